-- Call records: which numbers are misused, and how long do people talk?
--
--   anabranch run examples/calls.sql
--
-- 200,000 generated call records, a good hour. Now and then a number dials like a machine for some
-- 40 seconds. Look at the robots in the terminal; the other results lie in out/calls/. Expect among
-- the robots
--
--   time     caller  calls  callees
--     60  600001960    182      182
--    340  600015680    183      183
--   3900  600010120    187      187
--
-- and these boxes:
--
--   time     caller      other  seconds
--   1758  600008336  600006240      528
--   2053  600010481  600017043      422
--   2421  600007837  600019141      339
--   3195  600015787  600019041       18
--
-- To run it anew, remove out/calls.

-- A record is written when its call ends. Here time is in seconds, so lengths of time are plain numbers;
-- where it is a timestamp they are texts: LATENESS '10 seconds', HOP(ts, '1 minute', '20 seconds').
CREATE STREAM calls
  ORDERED BY time LATENESS 10
  WITH (generator = 'calls', rows = 200_000, rows_per_second = 50, keys = 20_000, skew = 'drift',
        disorder = 10, seed = 7);

-- Many short calls by one number to many others: every 20 seconds, over the minute before.
CREATE QUERY robots AS
  SELECT window_end AS time, caller, COUNT(*) AS calls, COUNT(DISTINCT callee) AS callees
  FROM calls
  WHERE duration < 30
  GROUP BY HOP(time, 60, 20), caller
  HAVING COUNT(*) >= 180;

-- Two phones with one number: a session is a number's calls with less than 30 seconds between them,
-- and nobody comes to so many districts in one, nor so many kilometres.
CREATE QUERY cloned AS
  SELECT caller, window_start, window_end, COUNT(*) AS calls, COUNT(DISTINCT district) AS districts,
         MAX(x) - MIN(x) AS kilometres_east, MAX(y) - MIN(y) AS kilometres_north
  FROM calls
  GROUP BY SESSION(time, 30), caller
  HAVING COUNT(DISTINCT district) >= 5;

-- How long people talk in each district: every ten minutes, the half hour before.
CREATE QUERY districts AS
  SELECT window_start, window_end, district, COUNT(*) AS calls, AVG(duration) AS mean,
         STDDEV(duration) AS spread, APPROX_QUANTILE(duration, 0.9) AS p90
  FROM calls
  GROUP BY HOP(time, 1800, 600), district;

-- OVER gives every row a value over the last rows of its group: here a call and the nine before it.
CREATE VIEW history AS
  SELECT time, caller, duration,
         COUNT(*) OVER (PARTITION BY caller ORDER BY time ROWS 9 PRECEDING) AS calls,
         MIN(time) OVER (PARTITION BY caller ORDER BY time ROWS 9 PRECEDING) AS since,
         MAX(duration) OVER (PARTITION BY caller ORDER BY time ROWS 9 PRECEDING) AS longest
  FROM calls;

-- Ten calls in a row of which none was answered for long: the number rings and hangs up.
CREATE QUERY ringing AS
  SELECT time, caller, since, longest
  FROM history
  WHERE calls = 10 AND longest <= 15;

-- Two phones with one number, once more: a call that began less than a minute after another one had ended,
-- 82 kilometres and more away. The bound between the two times says how long calls are remembered.
CREATE QUERY impossible_trips AS
  SELECT b.time, a.caller, a.district AS here, b.district AS there, b.start - a.time AS seconds,
         SQRT(POWER(a.x - b.x, 2) + POWER(a.y - b.y, 2)) AS kilometres
  FROM calls a JOIN calls b
    ON a.caller = b.caller AND b.time BETWEEN a.time AND a.time + 60 AND b.start >= a.time
   AND POWER(a.x - b.x, 2) + POWER(a.y - b.y, 2) >= 82 * 82;

-- A box full of telephone cards: calls of different numbers that overlap in time, within 60 metres. No
-- column is equal here, so every long call is compared with every other one, on all sites together. The
-- call that ended first is a: the other one had begun before that, and has ended within a quarter of an hour.
CREATE VIEW long_calls AS
  SELECT time, start, caller, x, y FROM calls WHERE duration BETWEEN 600 AND 900;

CREATE QUERY boxes AS
  SELECT b.time, a.caller, b.caller AS other, a.time - b.start AS seconds, a.x, a.y
  FROM long_calls a JOIN long_calls b
    ON b.time BETWEEN a.time AND a.time + 900 AND b.start < a.time AND a.caller <> b.caller
   AND ABS(a.x - b.x) < 0.06 AND ABS(a.y - b.y) < 0.06;

CREATE SINK robots TO CONSOLE;
CREATE SINK cloned TO 'out/calls/cloned' WITH (format = 'json');
CREATE SINK districts TO 'out/calls/districts';
CREATE SINK ringing TO 'out/calls/ringing' WITH (format = 'csv');
CREATE SINK impossible_trips TO 'out/calls/impossible_trips' WITH (format = 'csv');
CREATE SINK boxes TO 'out/calls/boxes' WITH (format = 'csv');

SET checkpoint = 'out/calls/checkpoint';
SET at_end = 'close';
SET max_rows_per_epoch = 50_000;
