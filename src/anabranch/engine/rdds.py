"""RDDs of Python tasks, made and collected with as few calls to the JVM as it takes.

A small epoch is mostly overhead, and every call through the gateway is a part of it: PySpark's own RDDs make
some eighty of them for the one job of an epoch. Here what stays the same is made once: the classes that are
called, the environment of the workers, the partitions that tasks start from, and those that pin a task to an
executor.
"""

from __future__ import annotations

import copyreg
import io
import operator
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.java_collections import ListConverter, MapConverter
from pyspark import Broadcast, SparkContext
from pyspark.core.broadcast import _from_id
from pyspark.serializers import NoOpSerializer, PairDeserializer
from pyspark.util import _load_from_socket

Task = Callable[[int, Iterable[Any]], Iterator[bytes]]
"""Gets the number of its partition and what is in it; it must read all of that."""

PLAIN = NoOpSerializer()
PINNED = PairDeserializer(PLAIN, PLAIN)
"""For partitions that are zipped with those that pin them."""


@dataclass(frozen=True)
class Shuffled:
    """What comes from a shuffle, as the JVM has it."""

    pairs: Any
    """Numbers of sites with their parcels; a `JavaPairRDD`."""
    parcels: Any
    """The parcels alone; a `JavaRDD`."""


class Rdds:
    """Makes the RDDs of a Spark context; all of them are the JVM's own objects."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        jvm = context._jvm
        assert jvm is not None
        self._function, self._pairwise = jvm.SimplePythonFunction, jvm.PairwiseRDD
        self._python, self._partitioner = jvm.PythonRDD, jvm.PythonPartitioner
        # A member of a class is looked up in the JVM whenever it is named
        self._values, self._serve = jvm.PythonRDD.valueOfPair, jvm.PythonRDD.collectAndServe
        self._array_list, self._pair = jvm.java.util.ArrayList, jvm.scala.Tuple2
        self._convert = jvm.scala.jdk.javaapi.CollectionConverters
        self._java_rdd = jvm.org.apache.spark.api.java.JavaRDD
        self._bytes = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("[B"))
        gateway = context._gateway
        assert gateway is not None
        self._client = gateway._gateway_client
        self._spark = context._jsc.sc()
        self._scheduler = self._spark.dagScheduler()
        self._environment = MapConverter().convert(context.environment, self._client)
        self._includes = self._listed_here(context._python_includes or ())
        self._broadcasts: tuple[dict[Any, int], Any] = {}, self._listed_here([])
        self._empty: dict[int, Any] = {}
        self._partitioners: dict[int, Any] = {}
        self._pins: tuple[tuple[str, ...], dict[int, Any]] = (), {}

    def empty(self, partitions: int) -> Any:
        """Partitions with nothing in them, for tasks that know what to read."""
        if partitions not in self._empty:
            self._empty[partitions] = self._context.parallelize([], partitions)._jrdd.rdd()
        return self._empty[partitions]

    def tasks(self, over: Any, task: Task, pinned: bool, told: Sequence[Broadcast[Any]]) -> Any:
        """What a task makes of each partition; `told` are the broadcasts it reads."""
        numbers, listed = self._known(told)
        command = io.BytesIO()
        pickler = pickle.Pickler(command)
        # By itself each would ask the JVM for its number, whenever it is pickled
        pickler.dispatch_table = {
            **copyreg.dispatch_table, Broadcast: lambda one: (_from_id, (numbers[one],)),
        }  # fmt: skip
        pickler.dump((task, None, PINNED if pinned else PLAIN, PLAIN))
        function = self._function(
            bytearray(command.getbuffer()), self._environment, self._includes,
            self._context.pythonExec, self._context.pythonVer, listed,
            self._context._javaAccumulator,
        )  # fmt: skip
        return self._python(over, function, False, False)

    def _known(self, broadcasts: Sequence[Broadcast[Any]]) -> tuple[dict[Any, int], Any]:
        """The numbers of broadcasts and a list in the JVM, made anew only when they are others."""
        numbers, listed = self._broadcasts
        if len(numbers) != len(broadcasts) or any(map(operator.is_not, numbers, broadcasts)):
            there = [broadcast._jbroadcast for broadcast in broadcasts]
            numbers = {one: own.id() for one, own in zip(broadcasts, there, strict=True)}
            listed = self._listed_here(there)
            self._broadcasts = numbers, listed
        return numbers, listed

    def shuffled(self, pairs: Any, sites: int) -> Shuffled:
        """Numbers of sites and parcels in turn, regrouped by site."""
        if sites not in self._partitioners:
            self._partitioners[sites] = self._partitioner(sites, 0)
        addressed = self._pairwise(pairs).asJavaPairRDD()
        partitioned = addressed.partitionBy(self._partitioners[sites])
        return Shuffled(partitioned, self._values(partitioned))

    def begin(self, shuffled: Shuffled) -> Any:
        """Has the tasks before a shuffle run now, by themselves; what ends when they have."""
        return self._spark.submitMapStage(shuffled.pairs.rdd().dependencies().head())

    def jobs(self) -> int:
        """How many jobs there have been, those of others too."""
        return int(self._scheduler.numTotalJobs())

    def zipped(self, shuffled: Shuffled, executors: Sequence[str], senders: int) -> Any:
        """Shuffled partitions of `senders` elements each, every one preferring its executor."""
        if self._pins[0] != tuple(executors):
            self._pins = tuple(executors), {}
        pins = self._pins[1]
        if senders not in pins:
            # Made by the JVM: PySpark would pack several numbers into one element
            filler = self._context._jsc.parallelize(self._listed_here(range(senders)), 1)
            pins[senders] = self.pinned(executors).cartesian(filler).keys()
        return pins[senders].zip(shuffled.parcels).rdd()

    def pinned(self, executors: Sequence[str]) -> Any:
        """One element in each partition, each partition preferring its executor; a `JavaRDD`."""
        entries = self._array_list()
        for executor in executors:
            wanted = self._array_list()
            wanted.add(executor)
            entries.add(self._pair(bytearray(b"-"), self._convert.asScala(wanted).toSeq()))
        rows = self._spark.makeRDD(self._convert.asScala(entries).toSeq(), self._bytes)
        return self._java_rdd(rows, self._bytes)

    def _listed_here(self, values: Iterable[Any]) -> Any:
        """A list in the JVM."""
        return ListConverter().convert(list(values), self._client)

    def collect(self, rdd: Any) -> list[bytes]:
        """What all partitions hold, in their order."""
        with _load_from_socket(self._serve(rdd), PLAIN) as parts:
            return list(parts)
