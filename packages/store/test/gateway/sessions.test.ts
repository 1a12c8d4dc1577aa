import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  ErrorReply,
  MapReply,
  NullArray,
  OK,
  Push,
  Simple,
  Verbatim,
} from '../../src/resp/reply.js';
import { PlainClient, type Started, startGateway } from './started.js';

let started: Started;
const clients: PlainClient[] = [];

beforeAll(async () => {
  started = await startGateway();
});

afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

afterAll(() => started.close());

async function connect(to = started): Promise<PlainClient> {
  const client = await PlainClient.connect(to.port);
  clients.push(client);
  return client;
}

const error = (message: string): ErrorReply => new ErrorReply(message);

describe('the handshake', () => {
  it('speaks RESP 2 until HELLO 3', async () => {
    const client = await connect();
    expect(await client.ask('nonsense h')).toEqual(
      error("ERR unknown command 'nonsense', with args beginning with: 'h' "),
    );
    expect(await client.ask('config get save')).toEqual(['save', '']);
    const hello = (await client.ask('HELLO 3 SETNAME me')) as MapReply;
    expect(hello).toBeInstanceOf(MapReply);
    expect(new Map(hello.entries).get('proto')).toBe(3);
    expect(await client.ask('config get save')).toEqual(new MapReply([['save', '']]));
    expect(await client.ask('client getname')).toBe('me');
    expect(await client.ask('get nothing')).toBeNull();
    expect(await client.ask('hello 2')).toEqual(expect.arrayContaining(['proto', 2]));
  });

  it.each([
    ['hello 4', 'NOPROTO unsupported protocol version'],
    ['hello a', 'ERR Protocol version is not an integer or out of range'],
    ['hello 3 foo', "ERR Syntax error in HELLO option 'foo'"],
    ['hello 3 setname', "ERR Syntax error in HELLO option 'setname'"],
    ['hello 2 auth foo x', 'WRONGPASS invalid username-password pair or user is disabled.'],
    ['auth a b c', 'ERR syntax error'],
    ['select 1', 'ERR DB index is out of range'],
    ['select a', 'ERR value is not an integer or out of range'],
    ['ping a b', "ERR wrong number of arguments for 'ping' command"],
    ['config|get x', "ERR unknown command 'config|get', with args beginning with: 'x' "],
    ['command getkeys get', "ERR wrong number of arguments for 'command|getkeys' command"],
    [
      'pubsub channels a b',
      "ERR unknown subcommand or wrong number of arguments for 'channels'. Try PUBSUB HELP.",
    ],
    ['config', "ERR wrong number of arguments for 'config' command"],
    ['config foo', "ERR unknown subcommand 'foo'. Try CONFIG HELP."],
    ['config get', "ERR wrong number of arguments for 'config|get' command"],
    ['config set foo bar', "ERR Unknown option or number of arguments for CONFIG SET - 'foo'"],
    ['client reply foo', 'ERR syntax error'],
    ['client pause a', 'ERR timeout is not an integer or out of range'],
    ['client pause a constructor', 'ERR CLIENT PAUSE mode must be WRITE or ALL'],
    [
      'client pause 1 all b',
      "ERR unknown subcommand or wrong number of arguments for 'pause'. Try CLIENT HELP.",
    ],
    ['client kill foo', 'ERR No such client'],
    ['client kill id a', 'ERR client-id should be greater than 0'],
    ['client kill type foo', "ERR Unknown client type 'foo'"],
    ['get', "ERR wrong number of arguments for 'get' command"],
    ['foo a b c', "ERR unknown command 'foo', with args beginning with: 'a' 'b' 'c' "],
    ['exec', 'ERR EXEC without MULTI'],
    ['discard', 'ERR DISCARD without MULTI'],
  ])('%s: the error of Redis', async (request, message) => {
    const client = await connect();
    expect(await client.ask(request)).toEqual(error(message));
  });

  it('answers what clients ask first', async () => {
    const client = await connect();
    expect(await client.ask('select 0')).toEqual(OK);
    expect(await client.ask('client setinfo lib-name x')).toEqual(OK);
    expect(await client.ask('ping')).toEqual(new Simple('PONG'));
    expect(await client.ask('echo hello')).toBe('hello');
    expect(await client.ask('wait 1 0')).toBe(1);
    expect(await client.ask('time')).toEqual([expect.any(String), expect.any(String)]);
    const info = (await client.ask('info')) as string;
    for (const line of ['redis_version:7.0.15', 'loading:0', 'cluster_enabled:0', 'role:master']) {
      expect(info).toContain(`${line}\r\n`);
    }
    expect(info).toContain('maxmemory_policy:noeviction\r\n');
    expect(await client.ask('info nothing')).toBe('');
  });

  it('tells of commands what the table says', async () => {
    const client = await connect();
    const [[name, arity, flags, first, last, step]] = (await client.ask('command info get')) as [
      unknown[],
    ];
    expect([name, arity, first, last, step]).toEqual(['get', 2, 1, 1, 1]);
    expect(flags).toEqual([new Simple('readonly'), new Simple('fast')]);
    expect(await client.ask('command info nothing')).toEqual([null]);
    expect(await client.ask('command getkeys mset a 1 b 2')).toEqual(['a', 'b']);
    expect(await client.ask('command getkeys ping x')).toEqual(
      error('ERR The command has no key arguments'),
    );
    expect(await client.ask('command list filterby pattern mge*')).toEqual(['mget']);
    expect(await client.ask('command list')).toEqual(
      expect.arrayContaining(['get', 'client|list']),
    );
    expect(await client.ask('command getkeys eval script 0')).toEqual([]);
    const all = (await client.ask('command')) as unknown[];
    expect(await client.ask('command count')).toBe(all.length);
    const docs = (await client.ask('command docs get config')) as unknown[];
    expect(docs).toHaveLength(4);
  });

  it('ends with QUIT, after the reply', async () => {
    const client = await connect();
    client.sendRaw('SET a 1\r\nQUIT\r\nSET a 2\r\n');
    expect(await client.readAll()).toBe('+OK\r\n+OK\r\n');
  });
});

describe('with a password', () => {
  let closed: Started;

  beforeAll(async () => {
    closed = await startGateway({ requirepass: 'secret' });
  });

  afterAll(() => closed.close());

  it('nothing works before it', async () => {
    const client = await connect(closed);
    const noAuth = error('NOAUTH Authentication required.');
    expect(await client.ask('get a')).toEqual(noAuth);
    expect(await client.ask('ping')).toEqual(noAuth);
    expect(await client.ask('multi')).toEqual(noAuth);
    expect(await client.ask('subscribe a')).toEqual(noAuth);
    expect(await client.ask('client list')).toEqual(noAuth);
    expect(((await client.ask('hello 3')) as ErrorReply).message).toMatch(/^NOAUTH HELLO must be/);
    const wrong = error('WRONGPASS invalid username-password pair or user is disabled.');
    expect(await client.ask('auth wrong')).toEqual(wrong);
    expect(await client.ask('auth other secret')).toEqual(wrong);
    expect(await client.ask('get a')).toEqual(noAuth);
    expect(await client.ask('auth secret')).toEqual(OK);
    expect(await client.ask('get a')).toBeNull();
    expect(await client.ask('reset')).toEqual(new Simple('RESET'));
    expect(await client.ask('get a')).toEqual(noAuth);
    expect(await client.ask('hello 3 auth default secret')).toBeInstanceOf(MapReply);
    expect(await client.ask('get a')).toBeNull();
  });

  it('requests of strangers have to be small', async () => {
    const client = await connect(closed);
    client.sendRaw('*11\r\n');
    expect(await client.readAll()).toBe(
      '-ERR Protocol error: unauthenticated multibulk length\r\n',
    );
  });

  it('the limits are gone in the same pipeline', async () => {
    const client = await connect(closed);
    client.sendRaw('AUTH secret\r\n');
    client.send(['mget', ...Array.from({ length: 20 }, (_, i) => `k${i}`)]);
    expect(await client.read()).toEqual(OK);
    expect(await client.read()).toHaveLength(20);
  });

  it('can be set while the store runs', async () => {
    const client = await connect(closed);
    await client.ask('auth secret');
    expect(await client.ask('config set requirepass other')).toEqual(OK);
    const second = await connect(closed);
    expect(await second.ask('auth secret')).toBeInstanceOf(ErrorReply);
    expect(await second.ask('auth other')).toEqual(OK);
    await client.ask('config set requirepass secret');
  });
});

describe('CLIENT', () => {
  it('lists and describes clients', async () => {
    const client = await connect();
    await client.ask('client setname somebody');
    const id = (await client.ask('client id')) as number;
    const info = (await client.ask('client info')) as string;
    expect(info).toMatch(
      new RegExp(`^id=${id} addr=127.0.0.1:\\d+ laddr=127.0.0.1:${started.port} .* name=somebody `),
    );
    expect(await client.ask(`client list id ${id}`)).toMatch(/cmd=client\|list user=default/);
    expect(await client.ask('client list type pubsub')).toBe('');
    await client.ask('hello 3');
    expect(await client.ask('client list type pubsub')).toEqual(new Verbatim(''));
  });

  it('ends other clients', async () => {
    const [client, other] = [await connect(), await connect()];
    const id = await other.ask('client id');
    expect(await client.ask(`client kill id ${id}`)).toBe(1);
    expect(await other.readAll()).toBe('');
    expect(await client.ask(`client kill id ${id}`)).toBe(0);
    client.sendRaw(`CLIENT KILL ID ${await client.ask('client id')} SKIPME no\r\nPING\r\n`);
    expect(await client.readAll()).toBe(':1\r\n');
  });

  it('switches replies off and on', async () => {
    const client = await connect();
    client.sendRaw(
      'CLIENT REPLY OFF\r\nSET a 1\r\nMGET a b c\r\nFOO\r\nCLIENT REPLY ON\r\nGET a\r\n',
    );
    expect(await client.read()).toEqual(OK);
    expect(await client.read()).toBe('1');
    client.sendRaw('CLIENT REPLY SKIP\r\nGET a\r\nECHO x\r\n');
    expect(await client.read()).toBe('x');
  });

  it('holds commands back for a while', async () => {
    const [client, other] = [await connect(), await connect()];
    expect(await client.ask('client pause 60000 write')).toEqual(OK);
    expect(await client.ask('get p')).toBeNull();
    other.send(['get', 'p']);
    other.send(['set', 'p', '1']);
    other.send(['get', 'p']);
    expect(await other.read()).toBeNull();
    expect(await client.ask('get p')).toBeNull();
    await until(async () => /blocked_clients:1/.test((await client.ask('info clients')) as string));
    expect(await client.ask('client unpause')).toEqual(OK);
    expect(await client.ask('info clients')).toContain('blocked_clients:0');
    expect(await other.read()).toEqual(OK);
    expect(await other.read()).toBe('1');
  });
});

describe('pipelines', () => {
  it('are replied to in their order, whatever they hold', async () => {
    const client = await connect();
    const requests = [
      'SET pa 1',
      'PING',
      'MSET pa 2 pb 3 pc 4',
      'FOO',
      'GET pa',
      'MULTI',
      'GET pb',
      'MGET pa pb pc pd',
      'EXEC',
      'LMOVE pl pm LEFT LEFT',
      'HELLO 3',
      'GET pc',
      'HELLO 2',
      'INFO server',
      'ECHO last',
    ];
    client.sendRaw(requests.map((request) => `${request}\r\n`).join(''));
    const replies = [];
    for (const _ of requests) replies.push(await client.read());
    expect(replies.slice(0, 10)).toEqual([
      OK,
      new Simple('PONG'),
      OK,
      expect.any(ErrorReply),
      '2',
      OK,
      new Simple('QUEUED'),
      new Simple('QUEUED'),
      ['3', ['2', '3', '4', null]],
      null,
    ]);
    expect(replies[11]).toBe('4');
    expect(replies[14]).toBe('last');
  });

  it('may be longer than a piece', async () => {
    const client = await connect();
    const value = 'v'.repeat(100);
    for (let i = 0; i < 5000; i++) client.send(['set', `long${i % 50}`, `${value}${i}`]);
    for (let i = 0; i < 5000; i++) expect(await client.read()).toEqual(OK);
    expect(await client.ask('get long49')).toBe(`${value}4999`);
  });

  it('of commands that need no shard do not hold up others', async () => {
    const [client, other] = [await connect(), await connect()];
    const count = 100_000;
    client.sendRaw('PING\r\n'.repeat(count));
    let replies = 0;
    client.socket.on('data', (chunk: Buffer) => {
      replies += chunk.length / 7;
    });
    expect(await other.ask('ping')).toEqual(new Simple('PONG'));
    while (replies < count) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(replies).toBe(count);
  });

  it('are answered although the client has closed its side', async () => {
    const client = await connect();
    client.sendRaw('SET half 1\r\nGET half\r\nLMOVE hl1 hl2 LEFT LEFT\r\n');
    client.socket.end();
    expect(await client.readAll()).toBe('+OK\r\n$1\r\n1\r\n$-1\r\n');
  });
});

describe('transactions', () => {
  it('run over any keys', async () => {
    const client = await connect();
    for (const request of ['multi', 'mset ta 1 tb 2', 'incr ta', 'get tb', 'ping', 'foo']) {
      await client.ask(request);
    }
    expect(await client.ask('exec')).toEqual(
      error('EXECABORT Transaction discarded because of previous errors.'),
    );
    for (const request of ['multi', 'mset ta 1 tb 2', 'incr ta', 'lpush ta x', 'ping']) {
      await client.ask(request);
    }
    expect(await client.ask('exec')).toEqual([
      OK,
      2,
      error('WRONGTYPE Operation against a key holding the wrong kind of value'),
      new Simple('PONG'),
    ]);
  });

  it('may hold commands that have to be coordinated', async () => {
    const client = await connect();
    await client.ask('rpush tl 1 2 3');
    for (const request of ['multi', 'lmove tl tm left left', 'echo x', 'lrange tm 0 -1']) {
      expect(await client.ask(request)).toBeInstanceOf(Simple);
    }
    expect(await client.ask('exec')).toEqual(['1', 'x', ['1']]);
    expect(await client.ask('lrange tl 0 -1')).toEqual(['2', '3']);
  });

  it('reply with what each command has found, though later ones change it', async () => {
    const client = await connect();
    await client.ask('hset th f 1');
    const requests = ['hvals th', 'hgetall th', 'lmove tl2 tm2 left left', 'hset th g 2'];
    for (const request of ['multi', ...requests]) await client.ask(request);
    expect(await client.ask('exec')).toEqual([['1'], ['f', '1'], null, 1]);
  });

  it('do not wait in blocking commands', async () => {
    const client = await connect();
    await client.ask('multi');
    await client.ask('blpop nothing 0');
    expect(await client.ask('exec')).toEqual([NullArray.instance]);
  });

  it('only run if watched keys have not changed', async () => {
    const [client, other] = [await connect(), await connect()];
    const attempt = async (between: string): Promise<unknown> => {
      await client.ask('mset wa 1 wb 1');
      expect(await client.ask('watch wa wb wc')).toEqual(OK);
      if (between !== '') await other.ask(between);
      await client.ask('multi');
      await client.ask('mget wa wb');
      await client.ask('echo x');
      return client.ask('exec');
    };
    expect(await attempt('')).toEqual([['1', '1'], 'x']);
    expect(await attempt('set wb 2')).toBe(NullArray.instance);
    expect(await attempt('set wd 2')).toEqual([['1', '1'], 'x']);
    expect(await attempt('set wc 2')).toBe(NullArray.instance);
  });

  it('forget watched keys after EXEC, DISCARD and UNWATCH', async () => {
    const client = await connect();
    for (const end of ['unwatch', 'multi discard', 'multi exec']) {
      await client.ask('watch wx');
      for (const request of end.split(' ')) await client.ask(request);
      await client.ask('set wx 1');
      await client.ask('multi');
      await client.ask('get wx');
      expect(await client.ask('exec')).toEqual(['1']);
    }
  });

  it('refuse what Redis refuses in them', async () => {
    const client = await connect();
    await client.ask('multi');
    expect(await client.ask('multi')).toEqual(error('ERR MULTI calls can not be nested'));
    expect(await client.ask('watch a')).toEqual(error('ERR WATCH inside MULTI is not allowed'));
    for (const request of ['subscribe a', 'hello 3', 'client reply off', 'info']) {
      expect(await client.ask(request)).toEqual(
        error('ERR Command not allowed inside a transaction'),
      );
    }
    expect(await client.ask('set a')).toEqual(
      error("ERR wrong number of arguments for 'set' command"),
    );
    expect(await client.ask('exec')).toBeInstanceOf(ErrorReply);
    expect(await client.ask('get a')).not.toBeInstanceOf(ErrorReply);
  });
});

describe('blocking commands', () => {
  it('wait, and what was sent after them waits too', async () => {
    const [client, other] = [await connect(), await connect()];
    client.sendRaw('BLPOP bl 0\r\nECHO after\r\n');
    await untilBlocked(other);
    expect(await other.ask('rpush bl x')).toBe(1);
    expect(await client.read()).toEqual(['bl', 'x']);
    expect(await client.read()).toBe('after');
  });

  it('end by CLIENT UNBLOCK', async () => {
    const [client, other] = [await connect(), await connect()];
    const id = await client.ask('client id');
    for (const [reason, reply] of [
      ['', NullArray.instance],
      [' timeout', NullArray.instance],
      [' error', error('UNBLOCKED client unblocked via CLIENT UNBLOCK')],
    ] as const) {
      client.send(['blpop', 'bn', '0']);
      await untilBlocked(other);
      expect(await other.ask(`client unblock ${id}${reason}`)).toBe(1);
      expect(await client.read()).toEqual(reply);
    }
    expect(await other.ask(`client unblock ${id}`)).toBe(0);
  });

  it('end with their connection', async () => {
    const [client, other] = [await connect(), await connect()];
    client.send(['blpop', 'bg', '0']);
    await untilBlocked(other);
    client.close();
    await until(async () => !/blocked_clients:1/.test((await other.ask('info clients')) as string));
    await other.ask('rpush bg x');
    await until(async () => (await other.ask('llen bg')) === 1);
  });
});

describe('channels', () => {
  it('RESP 2: messages are arrays, and other commands are refused', async () => {
    const [client, other] = [await connect(), await connect()];
    client.send(['subscribe', 'ca', 'cb', 'ca']);
    expect(await client.read()).toEqual(['subscribe', 'ca', 1]);
    expect(await client.read()).toEqual(['subscribe', 'cb', 2]);
    expect(await client.read()).toEqual(['subscribe', 'ca', 2]);
    expect(await client.ask('psubscribe c*')).toEqual(['psubscribe', 'c*', 3]);
    expect(await client.ask('ssubscribe cs')).toEqual(['ssubscribe', 'cs', 1]);
    expect(await client.ask('get a')).toEqual(
      error(
        "ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
      ),
    );
    expect(await client.ask('ping')).toEqual(['pong', '']);
    expect(await other.ask('publish ca hello')).toBe(2);
    expect(await client.read()).toEqual(['message', 'ca', 'hello']);
    expect(await client.read()).toEqual(['pmessage', 'c*', 'ca', 'hello']);
    expect(await other.ask('spublish cs there')).toBe(1);
    expect(await client.read()).toEqual(['smessage', 'cs', 'there']);
    expect(await other.ask('pubsub numsub ca cb cc')).toEqual(['ca', 1, 'cb', 1, 'cc', 0]);
    expect(await other.ask('pubsub numpat')).toBe(1);
    expect(((await other.ask('pubsub channels')) as string[]).sort()).toEqual(['ca', 'cb']);
    expect(await client.ask('unsubscribe cb nothing')).toEqual(['unsubscribe', 'cb', 2]);
    expect(await client.read()).toEqual(['unsubscribe', 'nothing', 2]);
    expect(await client.ask('unsubscribe')).toEqual(['unsubscribe', 'ca', 1]);
    expect(await client.ask('unsubscribe')).toEqual(['unsubscribe', null, 1]);
    expect(await client.ask('punsubscribe')).toEqual(['punsubscribe', 'c*', 0]);
    expect(await client.ask('sunsubscribe')).toEqual(['sunsubscribe', 'cs', 0]);
    expect(await client.ask('echo free')).toBe('free');
    expect(await other.ask('publish ca hello')).toBe(0);
  });

  it('RESP 3: messages are pushed beside replies', async () => {
    const client = await connect();
    await client.ask('hello 3');
    expect(await client.ask('subscribe cr')).toEqual(new Push(['subscribe', 'cr', 1]));
    expect(await client.ask('get nothing')).toBeNull();
    client.send(['publish', 'cr', 'x']);
    const both = [await client.read(), await client.read()];
    expect(both).toContainEqual(1);
    expect(both).toContainEqual(new Push(['message', 'cr', 'x']));
  });

  it('a client that is gone does not count', async () => {
    const [client, other] = [await connect(), await connect()];
    await client.ask('subscribe cg');
    expect(await other.ask('publish cg x')).toBe(1);
    client.close();
    await until(async () => (await other.ask('publish cg x')) === 0);
    expect(await other.ask('pubsub channels cg')).toEqual([]);
  });

  it('RESET ends subscriptions', async () => {
    const client = await connect();
    await client.ask('subscribe cx');
    expect(await client.ask('reset')).toEqual(new Simple('RESET'));
    expect(await client.ask('get nothing')).toBeNull();
  });
});

async function untilBlocked(client: PlainClient): Promise<void> {
  await until(async () => /blocked_clients:1/.test((await client.ask('info clients')) as string));
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5));
}
