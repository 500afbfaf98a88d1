-- Queries of the Nexmark benchmark, in the words of Flink and RisingWave.
--
--   python -m anabranch.testing.nexmark nexmark 1000000     (people, auctions, bids and q13's table as Parquet)
--   anabranch run examples/nexmark.sql
--
-- Results lie in out/nexmark/. Which of q0 to q22 run as they are, and what the others need, is in
-- docs/sql.md.

SET at_end = 'close';
-- q3 and q20 join without a bound of time: they keep all auctions, and all people or bids.
SET allow_unbounded_state = true;

CREATE STREAM person ORDERED BY date_time WITH (path = 'nexmark/person', file_order = 'name');
CREATE STREAM auction ORDERED BY date_time WITH (path = 'nexmark/auction', file_order = 'name');
CREATE STREAM bid ORDERED BY date_time WITH (path = 'nexmark/bid', file_order = 'name');
CREATE TABLE side_input WITH (path = 'nexmark/side_input');

-- q0: all bids.
CREATE QUERY q0 AS SELECT auction, bidder, price, date_time, extra FROM bid;

-- q1: prices in another currency.
CREATE QUERY q1 AS SELECT auction, bidder, 0.908 * price AS price, date_time FROM bid;

-- q2: bids on some auctions.
CREATE QUERY q2 AS SELECT auction, price FROM bid WHERE auction % 123 = 0;

-- q3: who sells in a category, of some states.
CREATE QUERY q3 AS
  SELECT P.name, P.city, P.state, A.id
  FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
  WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA');

-- q5: the auctions with most bids in the last ten seconds, every two seconds.
CREATE QUERY q5 AS
  SELECT AuctionBids.auction, AuctionBids.num, AuctionBids.starttime FROM (
    SELECT auction, count(*) AS num, window_start AS starttime
    FROM HOP(bid, date_time, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
    GROUP BY window_start, auction
  ) AS AuctionBids
  JOIN (
    SELECT max(CountBids.num) AS maxn, CountBids.starttime_c
    FROM (
      SELECT count(*) AS num, window_start AS starttime_c
      FROM HOP(bid, date_time, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
      GROUP BY auction, window_start
    ) AS CountBids
    GROUP BY CountBids.starttime_c
  ) AS MaxBids
  ON AuctionBids.starttime = MaxBids.starttime_c AND AuctionBids.num >= MaxBids.maxn;

-- q7: the highest bids of every ten seconds.
CREATE QUERY q7 AS
  SELECT B.auction, B.price, B.bidder, B.date_time
  FROM bid B
  JOIN (
    SELECT MAX(price) AS maxprice, window_end AS date_time
    FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND)
    GROUP BY window_end
  ) B1 ON B.price = B1.maxprice
  WHERE B.date_time BETWEEN B1.date_time - INTERVAL '10' SECOND AND B1.date_time;

-- q8: people who came and sold within the same ten seconds.
CREATE QUERY q8 AS
  SELECT P.id, P.name, P.starttime FROM (
    SELECT id, name, window_start AS starttime, window_end AS endtime
    FROM TUMBLE(person, date_time, INTERVAL '10' SECOND)
    GROUP BY id, name, window_start, window_end
  ) P
  JOIN (
    SELECT seller, window_start AS starttime, window_end AS endtime
    FROM TUMBLE(auction, date_time, INTERVAL '10' SECOND)
    GROUP BY seller, window_start, window_end
  ) A ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime;

-- q9: the bid that wins each auction; here an auction lasts ten seconds, as rows have no other end of it.
CREATE QUERY q9 AS
  SELECT id, item_name, seller, date_time, auction, bidder, price, bid_time FROM (
    SELECT A.id, A.item_name, A.seller, A.date_time, B.auction, B.bidder, B.price, B.date_time AS bid_time
    FROM auction AS A JOIN bid AS B ON A.id = B.auction
     AND B.date_time BETWEEN A.date_time AND A.date_time + INTERVAL '10' SECOND
  )
  QUALIFY ROW_NUMBER() OVER (PARTITION BY id, date_time ORDER BY price DESC, bid_time ASC) = 1;

-- q10: all bids with their day and minute.
CREATE QUERY q10 AS
  SELECT auction, bidder, price, date_time, extra,
         TO_CHAR(date_time, 'YYYY-MM-DD') AS date, TO_CHAR(date_time, 'HH24:MI') AS time
  FROM bid;

-- q11: what people bid while they are there; ten seconds without a bid end a visit.
CREATE QUERY q11 AS
  SELECT bidder, count(*) AS bid_count, SESSION_START(date_time, INTERVAL '10' SECOND) AS starttime,
         SESSION_END(date_time, INTERVAL '10' SECOND) AS endtime
  FROM bid
  GROUP BY bidder, SESSION(date_time, INTERVAL '10' SECOND);

-- q13: bids with what a table has for their auction.
CREATE QUERY q13 AS
  SELECT B.auction, B.bidder, B.price, B.date_time, S.value
  FROM bid AS B JOIN side_input AS S ON B.auction % 10000 = S.key;

-- q14: bids in dollars with the time of day, and how often the letter c stands beside them.
CREATE QUERY q14 AS
  SELECT auction, bidder, 0.908 * price AS price,
         CASE
           WHEN EXTRACT(HOUR FROM date_time) >= 8 AND EXTRACT(HOUR FROM date_time) <= 18 THEN 'dayTime'
           WHEN EXTRACT(HOUR FROM date_time) <= 6 OR EXTRACT(HOUR FROM date_time) >= 20 THEN 'nightTime'
           ELSE 'otherTime'
         END AS bidTimeType,
         date_time, extra, REGEXP_COUNT(extra, 'c') AS c_counts
  FROM bid
  WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000;

-- q15: bids of a day, by their height.
CREATE QUERY q15 AS
  SELECT TO_CHAR(date_time, 'YYYY-MM-DD') AS day,
         count(*) AS total_bids,
         count(*) FILTER (WHERE price < 10000) AS rank1_bids,
         count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
         count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
         count(DISTINCT bidder) AS total_bidders,
         count(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
         count(DISTINCT auction) AS total_auctions
  FROM bid
  GROUP BY TO_CHAR(date_time, 'YYYY-MM-DD');

-- q16: the same for every channel, with the minute of its last bid.
CREATE QUERY q16 AS
  SELECT channel, TO_CHAR(date_time, 'YYYY-MM-DD') AS day, max(TO_CHAR(date_time, 'HH24:MI')) AS minute,
         count(*) AS total_bids,
         count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
         count(DISTINCT bidder) AS total_bidders,
         count(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions
  FROM bid
  GROUP BY channel, TO_CHAR(date_time, 'YYYY-MM-DD');

-- q17: the bids of a day on each auction.
CREATE QUERY q17 AS
  SELECT auction, TO_CHAR(date_time, 'YYYY-MM-DD') AS day,
         count(*) AS total_bids,
         count(*) FILTER (WHERE price < 10000) AS rank1_bids,
         min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
  FROM bid
  GROUP BY auction, TO_CHAR(date_time, 'YYYY-MM-DD');

-- q20: bids with their auction, of one category.
CREATE QUERY q20 AS
  SELECT B.auction, B.bidder, B.price, B.channel, B.url, B.date_time, B.extra,
         A.item_name, A.initial_bid, A.reserve, A.date_time AS begun, A.seller, A.category
  FROM bid AS B INNER JOIN auction AS A ON B.auction = A.id
  WHERE A.category = 10;

-- q21: the number of the channel that a bid came through.
CREATE QUERY q21 AS
  SELECT auction, bidder, price, channel,
         CASE
           WHEN LOWER(channel) = 'apple' THEN '0'
           WHEN LOWER(channel) = 'google' THEN '1'
           WHEN LOWER(channel) = 'facebook' THEN '2'
           WHEN LOWER(channel) = 'baidu' THEN '3'
           ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)
         END AS channel_id
  FROM bid;

-- q22: the folders of the page that a bid came from.
CREATE QUERY q22 AS
  SELECT auction, bidder, price, channel,
         SPLIT_PART(url, '/', 4) AS dir1, SPLIT_PART(url, '/', 5) AS dir2, SPLIT_PART(url, '/', 6) AS dir3
  FROM bid;

CREATE SINK q0 TO 'out/nexmark/q0';
CREATE SINK q1 TO 'out/nexmark/q1';
CREATE SINK q2 TO 'out/nexmark/q2';
CREATE SINK q3 TO 'out/nexmark/q3';
CREATE SINK q5 TO 'out/nexmark/q5';
CREATE SINK q7 TO 'out/nexmark/q7';
CREATE SINK q8 TO 'out/nexmark/q8';
CREATE SINK q9 TO 'out/nexmark/q9';
CREATE SINK q10 TO 'out/nexmark/q10';
CREATE SINK q11 TO 'out/nexmark/q11';
CREATE SINK q13 TO 'out/nexmark/q13';
CREATE SINK q14 TO 'out/nexmark/q14';
CREATE SINK q15 TO 'out/nexmark/q15';
CREATE SINK q16 TO 'out/nexmark/q16';
CREATE SINK q17 TO 'out/nexmark/q17';
CREATE SINK q20 TO 'out/nexmark/q20';
CREATE SINK q21 TO 'out/nexmark/q21';
CREATE SINK q22 TO 'out/nexmark/q22';
