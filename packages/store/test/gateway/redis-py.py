"""What programs do with redis-py. Each function is a check; the last line tells how many have passed."""

import sys
import threading

import redis

port = int(sys.argv[1])
closed_port = int(sys.argv[2])
db = redis.Redis(port=port, decode_responses=True)


def strings_and_bytes():
    raw = redis.Redis(port=port)
    assert raw.set("py:bytes", b"\x00\xff\r\n") is True
    assert raw.get("py:bytes") == b"\x00\xff\r\n"
    assert db.mset({"py:a": 1, "py:b": 2, "py:c": 3}) is True
    assert db.mget("py:a", "py:none", "py:c") == ["1", None, "3"]
    assert db.set("py:a", "x", nx=True) is None
    assert db.set("py:a", "9", get=True) == "1"
    assert db.incrbyfloat("py:f", 0.1) == 0.1
    assert db.delete("py:a", "py:b", "py:none") == 2


def collections():
    db.hset("py:hash", mapping={"name": "Ann", "age": 30})
    assert db.hgetall("py:hash") == {"name": "Ann", "age": "30"}
    db.zadd("py:zset", {"one": 1, "two": 2.5})
    assert db.zrange("py:zset", 0, -1, withscores=True) == [("one", 1.0), ("two", 2.5)]
    db.sadd("py:set1", "a", "b")
    db.sadd("py:set2", "b", "c")
    assert db.sinter("py:set1", "py:set2") == {"b"}
    assert db.sunionstore("py:set3", "py:set1", "py:set2") == 3
    db.rpush("py:list", *range(100))
    assert db.lrange("py:list", -2, -1) == ["98", "99"]
    assert db.lmove("py:list", "py:list2") == "0"


def scans():
    for i in range(300):
        db.set(f"py:scan:{i}", i)
    assert len(set(db.scan_iter("py:scan:*", count=50))) == 300


def pipelines_and_transactions():
    with db.pipeline(transaction=False) as pipe:
        pipe.set("py:p1", 1).incr("py:p1").get("py:p1").lpush("py:p1", "x")
        replies = pipe.execute(raise_on_error=False)
    assert replies[:3] == [True, 2, "2"]
    assert isinstance(replies[3], redis.ResponseError)
    with db.pipeline() as pipe:
        assert pipe.set("py:t1", 1).set("py:t2", 2).mget("py:t1", "py:t2").execute() == [True, True, ["1", "2"]]


def watched_keys():
    db.mset({"py:from": 100, "py:to": 0})

    def transfer(pipe):
        left = int(pipe.get("py:from"))
        pipe.multi()
        pipe.set("py:from", left - 1)
        pipe.incr("py:to")

    def move():
        for _ in range(10):
            db.transaction(transfer, "py:from", "py:to")

    threads = [threading.Thread(target=move) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db.mget("py:from", "py:to") == ["60", "40"]


def channels():
    with db.pubsub() as listener:
        listener.subscribe("py:news")
        listener.psubscribe("py:n*")
        seen = [listener.get_message(timeout=10)["type"] for _ in range(2)]
        assert seen == ["subscribe", "psubscribe"]
        assert db.publish("py:news", "hello") == 2
        assert {listener.get_message(timeout=10)["type"] for _ in range(2)} == {"message", "pmessage"}


def blocking():
    popped = []
    waiter = threading.Thread(target=lambda: popped.append(db.blpop(["py:q1", "py:q2"], timeout=30)))
    waiter.start()
    db.rpush("py:q2", "job")
    waiter.join()
    assert popped == [("py:q2", "job")]
    assert db.blpop("py:q1", timeout=0.05) is None


def scripts_and_locks():
    script = db.register_script("redis.call('set', KEYS[1], ARGV[1]) return redis.call('get', KEYS[2])")
    db.set("py:s2", "two")
    assert script(keys=["py:s1", "py:s2"], args=["one"]) == "two"
    assert db.get("py:s1") == "one"
    lock = db.lock("py:lock", timeout=30)
    assert lock.acquire(blocking=False)
    assert not db.lock("py:lock", timeout=30).acquire(blocking=False)
    lock.extend(30)
    lock.release()


def streams():
    first = db.xadd("py:stream", {"n": 1})
    db.xadd("py:stream", {"n": 2})
    db.xgroup_create("py:stream", "readers", id="0")
    [[name, entries]] = db.xreadgroup("readers", "me", {"py:stream": ">"}, count=10)
    assert name == "py:stream" and [fields for _, fields in entries] == [{"n": "1"}, {"n": "2"}]
    assert db.xack("py:stream", "readers", first) == 1
    assert db.xpending("py:stream", "readers")["pending"] == 1


def administration():
    assert db.info("server")["redis_version"].startswith("7.0")
    assert db.client_setname("py") and db.client_getname() == "py"
    assert isinstance(db.config_get("maxmemory*"), dict)
    assert db.time()[0] > 1_600_000_000
    assert "get" in db.command()


def passwords():
    assert redis.Redis(port=closed_port, password="secret").ping()
    try:
        redis.Redis(port=closed_port).ping()
    except redis.AuthenticationError:
        return
    raise AssertionError("a client without a password was let in")


checks = [
    strings_and_bytes,
    collections,
    scans,
    pipelines_and_transactions,
    watched_keys,
    channels,
    blocking,
    scripts_and_locks,
    streams,
    administration,
    passwords,
]
for check in checks:
    check()
    print(check.__name__)
print(f"{len(checks)} checks passed")
