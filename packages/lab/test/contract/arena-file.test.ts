/**
 * The mapped file behind `memory: 'processes'`, with real processes: errors, locks, sleeping, and sequential consistency of its
 * words. The children run the built dist/.
 */
import { type ChildProcess, fork, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  readFileSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, constants } from 'node:os';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { TramError } from 'tram-multicast/internal/errors.js';
import { ARENA, ARENA_MAGIC, ARENA_VERSION } from 'tram-multicast/internal/memory/arena.js';
import {
  type ArenaFile,
  arenaPath,
  createArenaFile,
  openArenaFile,
  removeArenaFile,
  removeUnlocked,
} from 'tram-multicast/internal/memory/processes/arena-file.js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const CHILD = fileURLToPath(new URL('./arena-file-child.mjs', import.meta.url));
const BUILT = new URL('../../../tram/dist/memory/processes/arena-file.js', import.meta.url).href;
const WORDS = 4096;
/** Words that the arena does not use. */
const WORD = 1000;
const WAKES = 1001;
const HOST = 3;

let path: string;
const children: ChildProcess[] = [];
const arenas: ArenaFile[] = [];

beforeEach((context) => {
  context.skip(process.platform !== 'linux', 'for Linux only');
  path = arenaPath(`test-${process.pid}-${context.task.id}`);
});

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const arena of arenas.splice(0)) arena.close();
  removeArenaFile(path);
});

describe('a file', () => {
  test('is named after the cluster, or given as a path', () => {
    expect(arenaPath('my-cluster_1.2')).toBe('/dev/shm/tram-my-cluster_1.2');
    expect(arenaPath('/var/run/arena')).toBe('/var/run/arena');
    expect(arenaPath('./arena')).toBe('./arena');
  });

  test('is zeroed, readable by its user only, and shared by all that open it', () => {
    const mine = create(WORDS);
    const { mode, size } = statSync(path);
    expect({ mode: mode & 0o777, size }).toEqual({ mode: 0o600, size: WORDS * 4 });
    expect(mine.words.length).toBe(WORDS);
    const yours = open();
    expect(yours.words.subarray(ARENA.description).every((word) => word === 0)).toBe(true);
    yours.words[WORD] = 7;
    expect(mine.words[WORD]).toBe(7);
  });

  test('a mapping outlives the removal of the file and the close of another mapping', () => {
    const mine = create(WORDS);
    const yours = open();
    removeArenaFile(path);
    removeArenaFile(path);
    expect(existsSync(path)).toBe(false);
    mine.words[WORD] = 7;
    mine.close();
    mine.close();
    mine.words[WORD] = 8;
    expect(yours.words[WORD]).toBe(7);
  });

  test('is not created twice', () => {
    create(WORDS);
    expect(failure(() => createArenaFile(path, WORDS)).code).toBe('TRAM_EXISTS');
    expect(existsSync(path)).toBe(true);
  });

  test('that is missing is an error with a hint how to start a cluster', () => {
    const { code, hint } = failure(() => openArenaFile(path));
    expect({ code, hint }).toEqual({
      code: 'TRAM_NOT_FOUND',
      hint: expect.stringContaining('tram up'),
    });
  });

  test('in a directory that is missing is an error that names the system error', () => {
    const error = failure(() => createArenaFile(`${path}/none`, WORDS));
    expect(error.code).toBe('TRAM_SYSTEM');
    expect(error.message).toContain('ENOENT');
  });
});

describe('a file that is not a complete arena is an error, and not a bus error', () => {
  test.each([1, 2, WORDS - 1])('cut to %i words', (words) => {
    create(WORDS);
    truncateSync(path, words * 4);
    expect(failure(() => openArenaFile(path)).code).toBe('TRAM_CORRUPT');
  });

  test('cut within a word', () => {
    create(WORDS);
    truncateSync(path, WORDS * 4 - 1);
    expect(failure(() => openArenaFile(path)).code).toBe('TRAM_CORRUPT');
  });

  test('another magic word', () => {
    create(WORDS).words[ARENA.magic]++;
    expect(failure(() => openArenaFile(path))).toMatchObject({
      code: 'TRAM_CORRUPT',
      retry: 'useless',
    });
  });

  test('another version', () => {
    create(WORDS).words[ARENA.version]++;
    expect(failure(() => openArenaFile(path)).code).toBe('TRAM_VERSION_MISMATCH');
  });

  test('a text', () => {
    writeFileSync(path, 'TRAM'.repeat(100));
    expect(failure(() => openArenaFile(path)).code).not.toBe('TRAM_SYSTEM');
  });

  test.each(['no header yet', 'empty'])('still being created: %s', (stage) => {
    if (stage === 'empty') writeFileSync(path, '');
    else arenas.push(createArenaFile(path, WORDS));
    expect(failure(() => openArenaFile(path))).toMatchObject({
      code: 'TRAM_CORRUPT',
      retry: 'safe',
    });
  });
});

describe('too little space is an error at the start, and leaves no file', () => {
  test('more than is free', () => {
    const { bavail, bsize } = statfsSync('/dev/shm');
    const words = (bavail * bsize) / 4 + 1024;
    expect(failure(() => createArenaFile(path, words)).code).toBe('TRAM_NO_SPACE');
    expect(existsSync(path)).toBe(false);
  });

  test('more than Node can view', () => {
    const { code, message } = failure(() => createArenaFile(path, 2 ** 40));
    expect(code).toBe('TRAM_NO_SPACE');
    expect(message).toContain('this version of Node');
    expect(existsSync(path)).toBe(false);
  });

  test('a small /dev/shm', async (context) => {
    const smallShm = [
      '-rm',
      'sh',
      '-c',
      'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$0" "$@"',
    ];
    if (spawnSync('unshare', [...smallShm, 'true']).status !== 0) {
      context.skip('mounting is not allowed here');
    }
    const words = 2 ** 19;
    const child = messagesOf(
      spawn('unshare', [...smallShm, process.execPath, CHILD, 'noSpace', path, `${words}`], {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      }),
    );
    expect(await child.next()).toEqual({
      outcome: {
        code: 'TRAM_NO_SPACE',
        message: 'The cluster needs 2 MiB of memory in /dev/shm, where 1 MiB are free.',
        hint:
          'Use a smaller logBytes, or fewer clients. Or enlarge /dev/shm: ' +
          'docker run --shm-size=2m, or mount -o remount,size=2m /dev/shm.',
      },
      left: false,
    });
    expect(await child.next()).toEqual({ errno: constants.errno.ENOSPC });
  });
});

describe('a file that its creator has not finished', () => {
  /** The header is not written. */
  function createUnfinished(): ArenaFile {
    const arena = createArenaFile(path, WORDS);
    arenas.push(arena);
    return arena;
  }

  test('is removed if the creator has crashed', () => {
    createUnfinished().close();
    removeUnlocked(path, HOST);
    expect(existsSync(path)).toBe(false);
  });

  test('is not removed once the creator has locked its host', () => {
    const arena = createUnfinished();
    arena.lockHost(HOST, 0);
    arena.requireAtPath();
    expect(() => removeUnlocked(path, HOST)).toThrow(
      expect.objectContaining({ code: 'TRAM_HOST_RUNNING' }),
    );
    arena.requireAtPath();
  });

  test('removed before that, it is of no use to its creator, whatever is at its path', () => {
    const arena = createUnfinished();
    removeUnlocked(path, HOST);
    const other = createUnfinished();
    arena.lockHost(HOST, 0);
    expect(() => arena.requireAtPath()).toThrow(
      expect.objectContaining({ code: 'TRAM_NOT_FOUND' }),
    );
    other.lockHost(HOST, 0);
    other.requireAtPath();
  });

  test('is of no use to its host while another process may be removing it', () => {
    const arena = create(WORDS);
    const remover = open();
    arena.lockHost(HOST, 0);
    const refused = expect.objectContaining({ code: 'TRAM_NOT_FOUND' });
    remover.removeFile(() => expect(() => arena.requireAtPath()).toThrow(refused));
  });
});

test('without koffi the error has the command that installs it', async () => {
  expect(await start('withoutKoffi', WORDS).next()).toEqual({
    outcome: {
      code: 'TRAM_NATIVE_MISSING',
      message: expect.stringContaining('koffi'),
      hint: 'npm install koffi',
    },
    left: false,
  });
});

describe("a host's lock", () => {
  test('has one holder, even in one process', () => {
    const mine = create(WORDS);
    const yours = open();
    const lock = mine.lockHost(HOST, 0);
    expect(lock.host).toBe(HOST);
    for (const arena of [mine, yours]) {
      expect(arena.isHostLocked(HOST)).toBe(true);
      expect(arena.isHostLocked(HOST + 1)).toBe(false);
      const error = failure(() => arena.lockHost(HOST, 4711));
      expect(error.code).toBe('TRAM_HOST_RUNNING');
      expect(error.message).toContain('4711');
    }
    lock.release();
    expect(mine.isHostLocked(HOST)).toBe(false);
    yours.lockHost(HOST, 0);
    lock.release();
    expect(mine.isHostLocked(HOST)).toBe(true);
    yours.close();
    expect(mine.isHostLocked(HOST)).toBe(false);
  });

  test('survives SIGSTOP and dies with SIGKILL', async () => {
    const arena = create(WORDS);
    const holder = start('hold', HOST);
    expect(await holder.next()).toBe('locked');
    expect(arena.isHostLocked(HOST)).toBe(true);
    expect(failure(() => arena.lockHost(HOST, holder.pid)).message).toContain(`${holder.pid}`);

    holder.process.kill('SIGSTOP');
    await untilStopped(holder.pid);
    expect(arena.isHostLocked(HOST)).toBe(true);

    holder.process.kill('SIGKILL');
    const killed = performance.now();
    while (arena.isHostLocked(HOST)) await turn();
    console.log(
      `a killed host's lock was free after ${(performance.now() - killed).toFixed(1)} ms`,
    );
    arena.lockHost(HOST, holder.pid);
  });

  test('dies with a thread that is terminated', async () => {
    const arena = create(WORDS);
    const worker = new Worker(
      `import(${JSON.stringify(BUILT)}).then(({ openArenaFile }) => {
        openArenaFile(${JSON.stringify(path)}).lockHost(${HOST}, 0);
        require('node:worker_threads').parentPort.postMessage('locked');
        for (;;);
      });`,
      { eval: true },
    );
    expect(await once(worker, 'message')).toEqual(['locked']);
    expect(arena.isHostLocked(HOST)).toBe(true);
    await worker.terminate();
    expect(arena.isHostLocked(HOST)).toBe(false);
  });
});

describe('sleep', () => {
  test('ends when another process wakes it', async () => {
    const { words, parking } = create(WORDS);
    const sleeper = start('sleep', WORD, WAKES);
    expect(await sleeper.next()).toBe('going to sleep');
    // While the word does not change, only a wake ends the sleep.
    while (Atomics.load(words, WAKES) === 0) {
      parking.wake(WORD);
      await turn();
    }
    Atomics.store(words, WORD, 1);
    parking.wake(WORD);
    expect(await sleeper.next()).toBe('awake');
  });

  test('does not begin if the word has another value', () => {
    create(WORDS).parking.wait(WORD, 5, Number.POSITIVE_INFINITY);
  });

  test.each([-1, 0, 0.3, 1000, 1_100_000.7])('ends after %f µs', (timeoutUs) => {
    create(WORDS).parking.wait(WORD, 0, timeoutUs);
  });
});

describe('words across processes', () => {
  test('a million racing adds lose none', async () => {
    const { words } = create(WORDS);
    const adders = [start('add', WORD, 500_000), start('add', WORD, 500_000)];
    for (const adder of adders) expect(await adder.next()).toBe('done');
    expect(words[WORD]).toBe(1_000_000);
  });

  const oneCore = availableParallelism() === 1;
  test.skipIf(oneCore)(
    'both store, then load: with atomic accesses they never both miss the other',
    async () => {
      const rounds = 400_000;
      expect(await bothMissed(rounds, 'atomic')).toBe(0);
      const plain = await bothMissed(rounds, 'plain');
      console.log(`plain accesses: both missed in ${plain} of ${rounds} rounds`);
    },
  );
});

/** The number of rounds in which neither of two processes saw the other's store. */
async function bothMissed(rounds: number, accesses: 'atomic' | 'plain'): Promise<number> {
  // Each process has a line with its round, and for each round a word to store into and a word to record a miss.
  const wordsOfEach = 16 + 2 * rounds;
  const [mine, yours] = [64, 64 + wordsOfEach];
  const { words } = create(64 + 2 * wordsOfEach);
  const isAtomic = accesses === 'atomic' ? 1 : 0;
  const players = [
    start('litmus', isAtomic, rounds, mine, yours),
    start('litmus', isAtomic, rounds, yours, mine),
  ];
  for (const player of players) expect(await player.next()).toBe('done');
  let both = 0;
  for (let note = 16 + rounds; note < wordsOfEach; note++) {
    both += words[mine + note] & words[yours + note];
  }
  removeArenaFile(path);
  return both;
}

function create(words: number): ArenaFile {
  const arena = createArenaFile(path, words);
  arenas.push(arena);
  arena.words[ARENA.version] = ARENA_VERSION;
  arena.words[ARENA.words] = words;
  Atomics.store(arena.words, ARENA.magic, ARENA_MAGIC);
  return arena;
}

function open(): ArenaFile {
  const arena = openArenaFile(path);
  arenas.push(arena);
  return arena;
}

function failure(action: () => unknown): TramError {
  try {
    action();
  } catch (error) {
    expect(error).toBeInstanceOf(TramError);
    return error as TramError;
  }
  throw new Error('it should have failed');
}

interface Messages {
  readonly process: ChildProcess;
  readonly pid: number;
  next(): Promise<unknown>;
}

function start(job: string, ...numbers: readonly number[]): Messages {
  return messagesOf(fork(CHILD, [job, path, ...numbers.map(String)]));
}

/** The messages of a child, in order. It is an error if the child ends before the next one. */
function messagesOf(child: ChildProcess): Messages {
  children.push(child);
  const told: unknown[] = [];
  child.on('message', (message) => told.push(message));
  const ended = once(child, 'exit');
  const next = async (): Promise<unknown> => {
    while (told.length === 0) {
      const end = await Promise.race([once(child, 'message').then(() => undefined), ended]);
      if (end !== undefined && told.length === 0) throw new Error(`the child ended: ${end}`);
    }
    return told.shift();
  };
  return { process: child, pid: child.pid!, next };
}

async function untilStopped(pid: number): Promise<void> {
  while (!readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') T ')) await turn();
}
