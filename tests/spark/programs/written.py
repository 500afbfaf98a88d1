"""The programs: functions of the inputs to a DataFrame, and the output mode they are started with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import functions as F

from programs.inputs import Inputs

Program = Callable[[Inputs], Any]
APPEND: dict[str, Program] = {}
UPDATE: dict[str, Program] = {}
LATE: dict[str, tuple[str, Program]] = {}
"""Programs with late rows, and their output modes."""


def append(program: Program) -> Program:
    APPEND[program.__name__] = program
    return program


def update(program: Program) -> Program:
    UPDATE[program.__name__] = program
    return program


def late(mode: str) -> Callable[[Program], Program]:
    def named(program: Program) -> Program:
        LATE[program.__name__] = mode, program
        return program

    return named


def readings(inputs: Inputs) -> Any:
    return inputs.readings.withWatermark("time", "20 seconds")


def signals(inputs: Inputs) -> Any:
    return inputs.devices.withWatermark("time", "150 seconds")


def seen(inputs: Inputs) -> Any:
    return inputs.impressions.withWatermark("impressionTime", "150 seconds")


def clicked(inputs: Inputs) -> Any:
    return inputs.clicks.withWatermark("clickTime", "210 seconds")


# -- each row alone ---------------------------------------------------------------------------------


@append
def select_and_where(inputs: Inputs) -> Any:
    return inputs.devices.select("device").where("signal > 10")


@append
def select_of_a_watermarked_stream(inputs: Inputs) -> Any:
    return signals(inputs).filter(F.col("kind") == "phone").select("time", "device", "signal")


@append
def new_columns(inputs: Inputs) -> Any:
    return (
        signals(inputs)
        .withColumn(
            "loud",
            F.when(F.col("signal") > 30, "yes").when(F.col("signal") > 10, "so").otherwise("no"),
        )
        .withColumn("twice", F.col("count") * 2)
        .drop("kind")
    )


@append
def renamed_columns(inputs: Inputs) -> Any:
    return (
        signals(inputs)
        .withColumnRenamed("device", "name")
        .select("name", F.col("count").alias("n"))
    )


@append
def sql_expressions(inputs: Inputs) -> Any:
    return signals(inputs).selectExpr(
        "upper(device) AS device", "length(kind) AS letters", "coalesce(kind, 'none') AS kind",
        "count % 3 AS rest", "abs(count) AS size", "-count AS minus",
    )  # fmt: skip


@append
def text_functions(inputs: Inputs) -> Any:
    return signals(inputs).select(
        F.concat("device", F.lit("-"), "kind").alias("both"),
        F.substring("kind", 2, 3).alias("part"),
        F.col("kind").startswith("ph").alias("p"),
        F.col("kind").contains("i").alias("i"),
        F.col("kind").like("fr%").alias("fr"),
    )


@append
def times_of_day(inputs: Inputs) -> Any:
    return signals(inputs).select(
        F.hour("time").alias("h"), F.minute("time").alias("m"), F.to_date("time").alias("day"),
        (F.col("time") + F.expr("INTERVAL 90 SECONDS")).alias("later"),
    )  # fmt: skip


@append
def casts(inputs: Inputs) -> Any:
    return signals(inputs).select(
        F.col("signal").cast("int").alias("whole"), F.col("count").cast("string").alias("text"),
        F.col("count").cast("double").alias("float"), F.floor("signal").alias("below"),
        (F.col("count") / 2).alias("half"),
    )  # fmt: skip


@append
def conditions(inputs: Inputs) -> Any:
    return signals(inputs).where(
        (F.col("count").between(1, 4) | F.col("kind").isNull())
        & ~F.col("device").isin("a", "b")
        & F.col("signal").isNotNull()
    )


@append
def nulls_that_are_equal(inputs: Inputs) -> Any:
    return signals(inputs).select("device", F.col("kind").eqNullSafe(F.lit("phone")).alias("phone"))


@append
def two_streams_together(inputs: Inputs) -> Any:
    here = signals(inputs).select("time", F.col("device").alias("name"))
    there = seen(inputs).select(F.col("impressionTime").alias("time"), F.col("site").alias("name"))
    return here.union(there)


@append
def what_is_missing(inputs: Inputs) -> Any:
    filled = signals(inputs).na.fill({"signal": 0.0, "kind": "unknown"})
    return filled.select("device", "kind", "signal")


@append
def rows_with_all_values(inputs: Inputs) -> Any:
    return signals(inputs).dropna(subset=["kind", "signal"]).select("device", "kind", "signal")


@append
def more_text_functions(inputs: Inputs) -> Any:
    return signals(inputs).select(
        F.regexp_replace("kind", "[aeiou]", "_").alias("spelt"),
        F.trim(F.concat(F.lit(" "), "device")).alias("bare"),
        F.lpad("device", 3, "*").alias("wide"),
        F.lower("kind").alias("low"),
        F.concat_ws("/", "device", "kind").alias("path"),
    )


@append
def largest_and_least(inputs: Inputs) -> Any:
    return signals(inputs).select(
        F.greatest("count", F.lit(2)).alias("most"), F.least("count", F.lit(2)).alias("least"),
        F.ceil("signal").alias("above"),
        (F.col("count").bitwiseAND(3)).alias("bits"),
    )  # fmt: skip


@append
def columns_by_name(inputs: Inputs) -> Any:
    here = signals(inputs).select("time", F.col("device").alias("name"))
    there = seen(inputs).select(F.col("site").alias("name"), F.col("impressionTime").alias("time"))
    return here.unionByName(there).where("name IS NOT NULL")


@append
def rows_without_duplicates(inputs: Inputs) -> Any:
    return signals(inputs).select("time", "device", "kind").dropDuplicates()


@append
def one_row_for_each_time_and_device(inputs: Inputs) -> Any:
    # Before the duplicates all columns but the keys agree, so that it does not matter which row is kept
    named = signals(inputs).withColumn("name", F.concat("device", F.lit("!")))
    return named.select("name", "time", "device").dropDuplicates(["time", "device"])


@append
def counts_of_rows_without_duplicates(inputs: Inputs) -> Any:
    one = signals(inputs).select("time", "kind").dropDuplicates(["time", "kind"])
    return one.groupBy(F.window("time", "1 minute"), "kind").count()


# -- windows ----------------------------------------------------------------------------------------


@append
def counts_by_window(inputs: Inputs) -> Any:
    return signals(inputs).groupBy(F.window("time", "1 minute"), "device").count()


@append
def counts_by_window_and_slide(inputs: Inputs) -> Any:
    return signals(inputs).groupBy(F.window("time", "1 minute", "20 seconds"), "device").count()


@append
def the_window_alone(inputs: Inputs) -> Any:
    return signals(inputs).groupBy(F.window("time", "30 seconds")).agg(F.sum("count").alias("n"))


@append
def start_and_end(inputs: Inputs) -> Any:
    return (
        signals(inputs)
        .groupBy(F.window("time", "1 minute"), "kind")
        .agg(F.avg("signal").alias("mean"), F.max("signal").alias("most"))
        .select("window.start", F.col("window.end").alias("until"), "kind", "mean", "most")
    )


@append
def aggregates(inputs: Inputs) -> Any:
    return (
        signals(inputs)
        .groupBy(F.window("time", "1 minute"), "device")
        .agg(
            F.min("count").alias("least"), F.count("kind").alias("known"), F.count("*").alias("all"),
            F.stddev("count").alias("spread"), F.variance("signal").alias("variance"),
        )
    )  # fmt: skip


@append
def arithmetic_of_aggregates(inputs: Inputs) -> Any:
    return (
        signals(inputs)
        .groupBy(F.window("time", "1 minute"))
        .agg(
            (F.sum("signal") / F.count("*")).alias("ratio"),
            (F.max("count") - F.min("count")).alias("range"),
        )
    )


@append
def a_key_that_is_computed(inputs: Inputs) -> Any:
    return (
        signals(inputs)
        .groupBy(F.window("time", "1 minute"), F.upper("device").alias("who"))
        .agg(F.sum("count").alias("n"))
    )


@append
def having(inputs: Inputs) -> Any:
    counted = signals(inputs).groupBy(F.window("time", "1 minute"), "device").count()
    return counted.where("count > 12").select("device", "count")


@append
def a_filter_below_the_window(inputs: Inputs) -> Any:
    return (
        signals(inputs)
        .where("kind = 'phone'")
        .select("time", "device", (F.col("count") + 1).alias("n"))
        .groupBy(F.window("time", "2 minutes"), "device")
        .agg(F.sum("n").alias("n"))
    )


@append
def sums_under_a_condition(inputs: Inputs) -> Any:
    return (
        signals(inputs)
        .groupBy(F.window("time", "1 minute"))
        .agg(F.sum(F.when(F.col("kind") == "phone", 1).otherwise(0)).alias("phones"))
    )


@append
def sessions(inputs: Inputs) -> Any:
    # Between whole seconds: a session that ends at the watermark itself is given an epoch later than by Spark
    marked = inputs.devices.withWatermark("time", "150500 milliseconds")
    return marked.groupBy(F.session_window("time", "5 seconds"), "device").count()


@append
def a_window_over_two_streams(inputs: Inputs) -> Any:
    here = inputs.devices.select("time", F.col("device").alias("name"))
    there = inputs.impressions.select(
        F.col("impressionTime").alias("time"), F.col("site").alias("name")
    )
    return (
        here.union(there)
        .withWatermark("time", "150 seconds")
        .groupBy(F.window("time", "1 minute"), "name")
        .count()
    )


@append
def a_watermark_on_a_computed_time(inputs: Inputs) -> Any:
    return (
        inputs.devices.withColumn("later", F.col("time") + F.expr("INTERVAL 10 MINUTES"))
        .withWatermark("later", "150 seconds")
        .groupBy(F.window("later", "1 minute"))
        .count()
    )


@append
def windows_that_begin_later(inputs: Inputs) -> Any:
    begin = F.window("time", "1 minute", "1 minute", "15 seconds")
    return signals(inputs).groupBy(begin).agg(F.count("*").alias("n"))


@append
def the_text_of_a_query(inputs: Inputs) -> Any:
    signals(inputs).createOrReplaceTempView("heard")
    return inputs.spark.sql(
        "SELECT window.start AS since, kind, COUNT(*) AS n, MAX(signal) AS loudest FROM heard "
        "WHERE device <> 'e' GROUP BY window(time, '1 minute'), kind HAVING COUNT(*) > 5"
    )


@append
def words_as_rows(inputs: Inputs) -> Any:
    parts = F.explode(F.split(F.concat_ws("-", "device", "kind"), "-"))
    return signals(inputs).select("time", parts.alias("part")).where("part <> 'a'")


@append
def counts_of_elements(inputs: Inputs) -> Any:
    words = signals(inputs).withColumn("word", F.explode_outer(F.split("kind", "i")))
    return words.groupBy(F.window("time", "1 minute"), "word").count()


# -- joins ------------------------------------------------------------------------------------------

WITHIN = """clickAdId = impressionAdId AND clickTime >= impressionTime
            AND clickTime <= impressionTime + interval 1 minute"""


@append
def an_inner_join(inputs: Inputs) -> Any:
    return seen(inputs).join(clicked(inputs), F.expr(WITHIN))


@append
def an_outer_join(inputs: Inputs) -> Any:
    return seen(inputs).join(clicked(inputs), F.expr(WITHIN), "leftOuter")


@append
def a_semi_join(inputs: Inputs) -> Any:
    return seen(inputs).join(clicked(inputs), F.expr(WITHIN), "leftSemi")


@append
def a_join_and_a_filter(inputs: Inputs) -> Any:
    joined = seen(inputs).join(clicked(inputs), F.expr(WITHIN + " AND cost > 3"))
    return joined.select("impressionAdId", "site", "cost", (F.col("cost") * 10).alias("cents"))


@append
def a_join_between_columns(inputs: Inputs) -> Any:
    here, there = seen(inputs), clicked(inputs)
    return here.join(
        there,
        (here.impressionAdId == there.clickAdId)
        & there.clickTime.between(
            here.impressionTime, here.impressionTime + F.expr("INTERVAL 30 SECONDS")
        ),
    )


@append
def an_outer_join_of_the_other_side(inputs: Inputs) -> Any:
    return seen(inputs).join(clicked(inputs), F.expr(WITHIN), "rightOuter")


@append
def a_full_outer_join(inputs: Inputs) -> Any:
    return seen(inputs).join(clicked(inputs), F.expr(WITHIN), "fullOuter")


# -- groups that change -----------------------------------------------------------------------------


@update
def running_counts(inputs: Inputs) -> Any:
    return inputs.devices.groupBy("device").count()


@update
def running_windows(inputs: Inputs) -> Any:
    return (
        signals(inputs)
        .groupBy(F.window("time", "1 minute"), "device")
        .agg(F.sum("count").alias("n"))
    )


@update
def running_sums_of_some(inputs: Inputs) -> Any:
    return (
        inputs.devices.where("signal > 5")
        .groupBy("kind")
        .agg(F.max("signal").alias("most"), F.count("*").alias("n"))
    )


# -- late rows --------------------------------------------------------------------------------------


@late("append")
def late_rows_of_windows(inputs: Inputs) -> Any:
    counted = readings(inputs).groupBy(F.window("time", "1 minute"), "device")
    return counted.agg(F.count("*").alias("n"), F.sum("count").alias("which"))


@late("append")
def late_rows_of_windows_that_overlap(inputs: Inputs) -> Any:
    counted = readings(inputs).groupBy(F.window("time", "1 minute", "20 seconds"))
    return counted.agg(F.count("*").alias("n"), F.sum("count").alias("which"))


@late("update")
def late_rows_of_windows_that_change(inputs: Inputs) -> Any:
    counted = readings(inputs).groupBy(F.window("time", "1 minute"), "device")
    return counted.agg(F.count("*").alias("n"), F.sum("count").alias("which"))


@late("update")
def late_rows_without_windows(inputs: Inputs) -> Any:
    return readings(inputs).groupBy("device").agg(F.count("*").alias("n"))


@late("append")
def late_rows_alone(inputs: Inputs) -> Any:
    return readings(inputs).where("device <> 'c'").select("time", "count")


@late("append")
def late_rows_without_duplicates(inputs: Inputs) -> Any:
    return readings(inputs).select("time", "device").dropDuplicates()
