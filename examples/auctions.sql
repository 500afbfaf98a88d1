-- An auction house, after NEXMark: what is hot, what was sold, who bids?
--
--   anabranch run examples/auctions.sql
--
-- Ten minutes of generated bids and auctions. Look at the turnover in the terminal, which grows from
-- epoch to epoch; the other results lie in out/auctions/. Expect among the turnover
--
--   window_start    bids  bidders
--              0   50000     2000
--              0  100000     2000
--              0  150000     2000
--            300   50000     2000
--
-- and among what was unwanted
--
--   time     auction  seller  reserve
--     34   340000031     210  9210.75
--    506  5060000021     121   9055.5
--
-- To run it anew, remove out/auctions.

CREATE STREAM bids
  ORDERED BY time
  WITH (generator = 'bids', rows = 300_000, rows_per_second = 500, keys = 2000, skew = 'zipf', seed = 3);

CREATE STREAM auctions
  ORDERED BY time
  WITH (generator = 'auctions', rows = 19_200, rows_per_second = 32, keys = 500, seed = 3);

-- Bids on each auction: every 20 seconds, over the minute before.
CREATE VIEW bids_per_auction AS
  SELECT window_start, window_end, auction, COUNT(*) AS bids
  FROM bids
  GROUP BY HOP(time, 60, 20), auction;

-- The window of one query can be the window of the next: how hot the hottest auction was.
CREATE QUERY hottest AS
  SELECT window_start, window_end, MAX(bids) AS bids, COUNT(*) AS auctions
  FROM bids_per_auction
  GROUP BY window_start, window_end;

-- Going, going, gone: an auction ends when nobody has bid for half a minute.
CREATE QUERY sold AS
  SELECT auction, window_start AS opened, window_end AS closed, COUNT(*) AS bids,
         FIRST(price) AS first_bid, MAX(price) AS highest_bid
  FROM bids
  GROUP BY SESSION(time, 30), auction;

-- Bidders who stayed for long, with never more than 15 seconds between two bids.
CREATE QUERY visits AS
  SELECT bidder, window_start AS came, window_end AS went, COUNT(*) AS bids, AVG(price) AS mean_price
  FROM bids
  GROUP BY SESSION(time, 15), bidder
  HAVING COUNT(*) >= 100;

-- What sellers ask for, by category.
CREATE QUERY categories AS
  SELECT window_start, window_end, category, COUNT(*) AS auctions, AVG(reserve) AS mean_reserve,
         MAX(reserve) AS highest_reserve
  FROM auctions
  GROUP BY TUMBLE(time, 300), category;

-- Bids beside their auctions, and a window over what they give: in each category, the bids of an auction's
-- first minute that reached what the seller asked for. Both inputs are forgotten after a minute.
CREATE QUERY reached AS
  SELECT window_start, window_end, category, COUNT(*) AS bids, MAX(price) AS highest_bid
  FROM bids b JOIN auctions a ON b.auction = a.auction AND b.time BETWEEN a.time AND a.time + 60
  WHERE b.price >= a.reserve
  GROUP BY TUMBLE(b.time, 300), category;

-- People who bid on what they sell themselves: two columns are equal.
CREATE QUERY own_goods AS
  SELECT b.time, seller, b.auction, price, reserve
  FROM bids b JOIN auctions a
    ON b.auction = a.auction AND b.bidder = a.seller AND b.time BETWEEN a.time AND a.time + 60
  WHERE price > reserve;

-- Dear goods that nobody wanted: no bid in the first minute. An ANTI JOIN has the rows that meet none; they
-- appear when that minute is over for certain. LEFT JOIN would have the others too, with their bids.
CREATE QUERY unwanted AS
  SELECT a.time, a.auction, seller, reserve
  FROM auctions a ANTI JOIN bids b ON a.auction = b.auction AND b.time BETWEEN a.time AND a.time + 60
  WHERE reserve >= 9000;

-- A window of rows instead of time: how the price moved over 20 bids on an auction, every 10 bids.
CREATE QUERY prices AS
  SELECT auction, window_start, window_end, MAX(price) AS best, LAST(price) - FIRST(price) AS change
  FROM bids
  GROUP BY COUNT_WINDOW(20, 10), auction;

-- Results of a window come once, when it is over. With EMIT UPDATE they come in every epoch in which
-- they changed.
CREATE QUERY turnover EMIT UPDATE AS
  SELECT window_start, COUNT(*) AS bids, COUNT(DISTINCT bidder) AS bidders
  FROM bids
  GROUP BY TUMBLE(time, 300);

CREATE SINK turnover TO CONSOLE;
CREATE SINK hottest TO 'out/auctions/hottest' WITH (format = 'csv');
CREATE SINK sold TO 'out/auctions/sold';
CREATE SINK visits TO 'out/auctions/visits';
CREATE SINK categories TO 'out/auctions/categories' WITH (format = 'csv');
CREATE SINK prices TO 'out/auctions/prices';
CREATE SINK reached TO 'out/auctions/reached' WITH (format = 'csv');
CREATE SINK own_goods TO 'out/auctions/own_goods' WITH (format = 'csv');
CREATE SINK unwanted TO 'out/auctions/unwanted' WITH (format = 'csv');

SET checkpoint = 'out/auctions/checkpoint';
SET at_end = 'close';
SET max_rows_per_epoch = 50_000;
