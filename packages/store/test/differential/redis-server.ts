/** The real server, on a socket in a folder of its own. */

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from './connection.js';

export const MISSING = 'redis-server is not installed: apt-get install redis-server';

export function hasRedisServer(): boolean {
  return spawnSync('redis-server', ['--version']).status === 0;
}

export interface RedisServer {
  readonly connection: Connection;
  /** Of its socket. */
  readonly path: string;
  /** Where it saves files. */
  readonly folder: string;
  stop(): Promise<void>;
}

/** @param more  further options */
export async function startRedisServer(
  more: Readonly<Record<string, string>> = {},
): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'tram-store-redis-'));
  const path = join(folder, 'socket');
  const options = {
    port: '0',
    unixsocket: path,
    dir: folder,
    save: '',
    appendonly: 'no',
    databases: '1',
    // Clients that wait time out soon.
    hz: '500',
    'enable-debug-command': 'yes',
    ...more,
  };
  const server = spawn(
    'redis-server',
    Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]),
    { stdio: 'ignore' },
  );
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  const stop = async () => {
    server.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  // Also if the tests end early.
  process.once('exit', () => server.kill('SIGKILL'));
  const connection = await connected(path, () => server.exitCode === null);
  // Keys that have expired stay until somebody asks for them, as in a keyspace without ticks.
  await connection.run([['DEBUG', 'SET-ACTIVE-EXPIRE', '0']], 2);
  return {
    connection,
    path,
    folder,
    stop: () => {
      connection.close();
      return stop();
    },
  };
}

/** The socket is there a moment before the server listens. */
async function connected(path: string, isRunning: () => boolean): Promise<Connection> {
  for (;;) {
    try {
      return await Connection.open({ path });
    } catch {
      if (!isRunning()) throw new Error('redis-server has ended');
      await sleep(10);
    }
  }
}
