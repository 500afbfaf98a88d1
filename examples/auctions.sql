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

SET checkpoint = 'out/auctions/checkpoint';
SET at_end = 'close';
SET max_rows_per_epoch = 50_000;
