-- A text without a query.

--stream tcp: time int64, srcIP int64, destIP int64, len int64, name string; ordered by time

--query q
-- nothing here

--fail= expected a SELECT, but the text is empty
