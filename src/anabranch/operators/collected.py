"""What aggregates keep that need the values of their group: lists, quantiles, rows of extremes, pairs."""

from __future__ import annotations

import polars as pl

from anabranch.operators.partials import SEQ, TIME, Partial


def members(column: str) -> pl.Expr:
    """All elements of the lists of a group."""
    return pl.col(column).list.explode(keep_nulls=False, empty_as_null=False)


class Collected(Partial):
    """array_agg and string_agg: every value with what orders it, its time and its arrival number."""

    def update(self, rows: pl.DataFrame) -> list[pl.Expr]:
        assert self.argument
        own = pl.col(self.argument)
        kept = pl.struct(own.alias("v"), pl.col(TIME).alias("t"), pl.col(SEQ).alias("s"))
        return [kept.filter(own.is_not_null()).alias(self.name)]

    def merge(self, rows: pl.DataFrame) -> list[pl.Expr]:
        return [members(self.name)]

    def finish(self) -> pl.Expr:
        directions, _, separator = str(self.call.parameter).partition("|")
        one = pl.element()
        values = one.struct.field("v")
        keys = [values.struct.field(f"o{number}") for number in range(len(directions))]
        keys += [one.struct.field("t"), one.struct.field("s")]
        down = [letter == "d" for letter in directions] + [False, False]
        ordered = values.struct.field("value").sort_by(keys, descending=down, nulls_last=True)
        found = pl.col(self.name).list.eval(ordered)
        if self.call.function == "string_agg":
            found = found.list.drop_nulls()
        some = pl.when(found.list.len() > 0).then(found)
        return some.list.join(separator) if self.call.function == "string_agg" else some


class Values(Partial):
    """Exact quantiles, and sums of different values: all values, or each once."""

    def _once(self, values: pl.Expr) -> pl.Expr:
        each = self.call.function in ("sum_distinct", "avg_distinct", "collect_set")
        return values.unique() if each else values

    def update(self, rows: pl.DataFrame) -> list[pl.Expr]:
        assert self.argument
        return [self._once(pl.col(self.argument).drop_nulls()).alias(self.name)]

    def merge(self, rows: pl.DataFrame) -> list[pl.Expr]:
        return [self._once(members(self.name))]

    def finish(self) -> pl.Expr:
        values = pl.col(self.name).list.sort()
        some = pl.when(values.list.len() > 0)
        count = values.list.len().cast(pl.Int64)
        match self.call.function:
            case "collect_set":
                return some.then(values)
            case "sum_distinct":
                return some.then(values.list.sum())
            case "avg_distinct":
                return some.then(values.list.eval(pl.element().cast(pl.Float64)).list.mean())
        assert isinstance(self.call.parameter, float)
        if self.call.function == "quantile_disc":
            place = (count.cast(pl.Float64) * self.call.parameter).ceil().cast(pl.Int64) - 1
            return some.then(values.list.get(place.clip(0), null_on_oob=True))
        floats = values.list.eval(pl.element().cast(pl.Float64))
        at = (count - 1).cast(pl.Float64) * self.call.parameter
        low, high = at.floor().cast(pl.Int64), at.ceil().cast(pl.Int64)
        first, second = (floats.list.get(place, null_on_oob=True) for place in (low, high))
        # Two equal values stay what they are, infinite or not
        between = (
            pl.when(first == second).then(first).otherwise(first + (second - first) * (at - low))
        )
        return some.then(between)


class RowOfExtreme(Partial):
    """max_by and min_by: the value beside the greatest or least."""

    def _extreme(self, column: str) -> pl.Expr:
        own = pl.col(column)
        by, value = own.struct.field("by"), own.struct.field("value")
        known = by.is_not_null() & value.is_not_null()
        most = self.call.function == "max_by"
        # Of several the least value, whatever came first
        return (
            own.filter(known)
            .sort_by(by.filter(known), value.filter(known), descending=[most, False])
            .first()
        )

    def update(self, rows: pl.DataFrame) -> list[pl.Expr]:
        assert self.argument
        return [self._extreme(self.argument).alias(self.name)]

    def merge(self, rows: pl.DataFrame) -> list[pl.Expr]:
        return [self._extreme(self.name)]

    def finish(self) -> pl.Expr:
        return pl.col(self.name).struct.field("value")


class Pairs(Partial):
    """Two numbers of each row: means, squared distances from them and their product, merged as variances."""

    def names(self) -> list[str]:
        return [f"{self.name}_{part}" for part in ("n", "x", "y", "xx", "yy", "xy")]

    def update(self, rows: pl.DataFrame) -> list[pl.Expr]:
        assert self.argument
        own = pl.col(self.argument)
        x, y = (own.struct.field(name).cast(pl.Float64) for name in ("x", "y"))
        known = x.is_not_null() & y.is_not_null()
        x, y = x.filter(known), y.filter(known)
        from_x, from_y = x - x.mean(), y - y.mean()
        sums = [
            x.len().cast(pl.Int64), x.mean().fill_null(0.0), y.mean().fill_null(0.0),
            (from_x * from_x).sum(), (from_y * from_y).sum(), (from_x * from_y).sum(),
        ]  # fmt: skip
        return [one.alias(name) for one, name in zip(sums, self.columns, strict=True)]

    def merge(self, rows: pl.DataFrame) -> list[pl.Expr]:
        n, x, y, xx, yy, xy = map(pl.col, self.columns)
        mean_x, mean_y = (
            pl.when(n.sum() > 0).then((n * mean).sum() / n.sum()).otherwise(0.0) for mean in (x, y)
        )
        sums = [
            n.sum(), mean_x, mean_y, xx.sum() + (n * (x - mean_x) ** 2).sum(),
            yy.sum() + (n * (y - mean_y) ** 2).sum(), xy.sum() + (n * (x - mean_x) * (y - mean_y)).sum(),
        ]  # fmt: skip
        return [one.alias(name) for one, name in zip(sums, self.columns, strict=True)]

    def finish(self) -> pl.Expr:
        n, x, y, xx, yy, xy = map(pl.col, self.columns)
        match self.call.function:
            case "regr_count":
                return n
            case "covar_pop":
                return pl.when(n > 0).then(xy / n)
            case "covar_samp":
                return pl.when(n > 1).then(xy / (n - 1))
            case "corr":
                return pl.when((n > 1) & (xx > 0) & (yy > 0)).then(xy / (xx * yy).sqrt())
            case "regr_slope":
                return pl.when(xx > 0).then(xy / xx)
            case "regr_intercept":
                return pl.when(xx > 0).then(y - xy / xx * x)
        straight = pl.when(yy == 0).then(1.0).otherwise(xy * xy / (xx * yy))
        return pl.when(xx > 0).then(straight)
