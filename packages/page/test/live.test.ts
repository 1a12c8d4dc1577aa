/** The live page in a browser, on real clusters. */
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Browser, Locator, Page } from 'playwright-core';
import { Cluster, type StartOptions } from 'tram-multicast';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  describeInBrowser,
  findBarriers,
  launchBrowser,
  NARROW,
  WIDE,
  watchErrors,
} from './browser.js';

const SIZES = { clients: 2, logBytes: 65_536, inboxBytes: 16_384, feedBytes: 16_384 };
const BUNDLE_BYTES_MAX = 60_000;
const HOOK_MS = 60_000;
const PATIENCE_MS = 20_000;

let browser: Browser;

/** Starts a cluster with its page. */
function start(groups: number, options: Partial<StartOptions> = {}): Promise<Cluster> {
  const page = { port: 0, ...options.page };
  return Cluster.start({ groups, hosts: 3, ...SIZES, ...options, page });
}

/** Waits for what becomes true, however busy the machine is. */
function eventually<Value>(look: () => Value | Promise<Value>) {
  return expect.poll(look, { timeout: PATIENCE_MS });
}

/** Opens the page of a cluster, and waits until it shows something. */
async function open(cluster: Cluster): Promise<Page> {
  const page = await browser.newPage({ viewport: WIDE });
  await page.goto(cluster.page!);
  await page.getByRole('heading', { name: 'Groups' }).waitFor();
  return page;
}

/** The row of a group, as a screen reader has it. */
function rowOf(page: Page, group: number): Promise<string | null> {
  return page.locator(`#group-${group} > tr`).first().textContent();
}

function leaderOf(cluster: Cluster, group: number): number | undefined {
  return cluster.status().groups[group].leader;
}

/** Sends at a steady rate. @returns ends that, when all is answered */
async function load(cluster: Cluster, destinations: () => number[]): Promise<() => Promise<void>> {
  const client = await cluster.connect();
  const payload = new Uint8Array(8);
  const timer = setInterval(() => {
    for (let i = 0; i < 10; i++) void client.multicast(destinations(), payload);
  }, 10);
  return () => {
    clearInterval(timer);
    return client.close();
  };
}

/** How many tasks of the page take longer than 50 ms, in some time. */
function longTasksIn(page: Page, ms: number): Promise<number> {
  return page.evaluate(
    (time) =>
      new Promise<number>((resolve) => {
        let count = 0;
        const observer = new PerformanceObserver((list) => {
          count += list.getEntries().length;
        });
        observer.observe({ type: 'longtask' });
        setTimeout(() => {
          observer.disconnect();
          resolve(count);
        }, time);
      }),
    ms,
  );
}

describeInBrowser('the live page', () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  }, HOOK_MS);
  afterAll(() => browser?.close());

  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
  });

  describe('a cluster of threads without control', () => {
    let cluster: Cluster;
    beforeAll(async () => {
      cluster = await start(3, { order: 'strict' });
    }, HOOK_MS);
    afterAll(() => cluster?.destroy());

    test('messages show as rates, latencies and indices', async () => {
      const page = await open(cluster);
      const stop = await load(cluster, () => [0, 1]);
      const textOf = (place: Locator) => eventually(() => place.innerText());
      await textOf(page.getByRole('figure').first()).toMatch(/second\s+[1-9]/);
      await textOf(page.getByRole('figure').nth(1)).toMatch(/p999\s+[\d.]+ .?s/);
      await page.getByRole('button', { name: 'g1', exact: true }).click();
      const replicas = page.getByRole('table', { name: 'Replicas of g1' });
      await textOf(replicas).toMatch(/g1\/0.*leads.*[1-9]/s);
      await textOf(page.locator('header')).toContain('1 of 2 clients connected');
      await stop();
    });

    test('the page offers no control, and the server has no route for it', async () => {
      const page = await open(cluster);
      await page.getByRole('button', { name: 'g0', exact: true }).click();
      expect(await page.getByRole('button', { name: /Crash|Restart|Lead/ }).count()).toBe(0);
      const body = JSON.stringify({ action: 'crash', host: 0 });
      const status = await page.evaluate(
        async (sent) => (await fetch('api/control', { method: 'POST', body: sent })).status,
        body,
      );
      expect(status).toBe(404);
      expect(cluster.status().hosts[0].state).toBe('up');
    });

    test('arrows go through the groups', async () => {
      const page = await open(cluster);
      await page.getByRole('button', { name: 'g0', exact: true }).focus();
      for (const key of ['ArrowDown', 'ArrowDown', 'ArrowUp', 'Enter'])
        await page.keyboard.press(key);
      await page.getByRole('table', { name: 'Replicas of g1' }).waitFor();
    });
  });

  describe('a cluster of threads with control', () => {
    let cluster: Cluster;
    beforeAll(async () => {
      cluster = await start(2, { page: { control: true } });
    }, HOOK_MS);
    afterAll(() => cluster?.destroy());

    test('a host is crashed and restarted with the keyboard alone, each confirmed', async () => {
      const page = await open(cluster);
      await page.getByRole('button', { name: 'Crash host 1' }).focus();
      await page.keyboard.press('Enter');
      const dialog = page.getByRole('dialog', { name: 'Crash host 1?' });
      await dialog.waitFor();
      // Nothing happens yet, and Escape is a no.
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'hidden' });
      expect(cluster.status().hosts[1].state).toBe('up');
      await page.keyboard.press('Enter');
      await dialog.waitFor();
      await page.keyboard.press('Enter');
      await dialog.getByText('Done.').waitFor();
      expect(cluster.status().hosts[1].state).toBe('down');
      await page.keyboard.press('Escape');
      await page.getByText('host 1 is down').waitFor();
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await findBarriers(page), colorScheme).toEqual([]);
      }
      await page.getByRole('button', { name: 'Restart host 1' }).focus();
      await page.keyboard.press('Enter');
      const restart = page.getByRole('dialog', { name: 'Restart host 1?' });
      await restart.waitFor();
      await page.keyboard.press('Enter');
      await restart.getByText('Done.').waitFor();
      expect(cluster.status().hosts[1].state).toBe('up');
    });

    test('a leader is chosen, and nothing on the way is a barrier', async () => {
      const page = await open(cluster);
      const next = (leaderOf(cluster, 1)! + 1) % 3;
      await page.getByRole('button', { name: 'g1', exact: true }).click();
      await page.getByText('As a table').first().click();
      expect(await findBarriers(page)).toEqual([]);
      await page.getByRole('button', { name: `Lead with g1/${next}` }).click();
      expect(await findBarriers(page)).toEqual([]);
      await page
        .getByRole('dialog')
        .getByRole('button', { name: `Let g1/${next} lead` })
        .click();
      await page.getByRole('dialog').getByText('Done.').waitFor();
      expect(leaderOf(cluster, 1)).toBe(next);
    });

    test('the token leaves the address bar, and is in no address that leaves the browser', async () => {
      const token = new URL(cluster.page!).hash.slice('#token='.length);
      const page = await browser.newPage();
      const sent: string[] = [];
      page.on('request', (request) => sent.push(request.url(), request.headers()['referer'] ?? ''));
      await page.goto(cluster.page!);
      await page.getByRole('heading', { name: 'Groups' }).waitFor();
      expect(page.url()).toBe(cluster.page!.replace(/#.*/, ''));
      // What Chromium reports of the first request is the address that was opened, fragment included.
      expect(sent.slice(2).filter((text) => text.includes(token))).toEqual([]);
      expect(sent.some((url) => url.endsWith('/api/events'))).toBe(true);
      // A reload still knows it.
      await page.reload();
      await page.getByRole('heading', { name: 'Groups' }).waitFor();
      // Another tab does not.
      const other = await browser.newPage();
      await other.goto(page.url());
      await other.getByText('open the link that it has printed').waitFor();
    });

    test('a page of another origin can neither look nor act, even with the token', async () => {
      const { origin, hash } = new URL(cluster.page!);
      const foreign = createServer((_, response) => response.end('<!doctype html>')).listen(
        0,
        '127.0.0.1',
      );
      const page = await browser.newPage();
      await page.goto(`http://127.0.0.1:${(foreign.address() as AddressInfo).port}/`);
      const outcomes = await page.evaluate(
        async ([server, token]) => {
          const authorization = `Bearer ${token}`;
          const body = JSON.stringify({ action: 'crash', host: 0 });
          const outcome = (path: string, request: RequestInit): Promise<string> =>
            fetch(server + path, request).then(
              ({ status, type }) => `${type} ${status}`,
              () => 'blocked',
            );
          return [
            await outcome('/api/events', { headers: { authorization } }),
            await outcome('/api/events', { mode: 'no-cors' }),
            await outcome('/api/control', { method: 'POST', headers: { authorization }, body }),
            await outcome('/api/control', { method: 'POST', mode: 'no-cors', body }),
            await outcome('/page.js', { mode: 'no-cors' }),
          ];
        },
        [origin, hash.slice('#token='.length)],
      );
      expect(outcomes).toEqual(Array.from(outcomes, () => 'blocked'));
      expect(cluster.status().hosts[0].state).toBe('up');
      foreign.close();
    });
  });

  test('a leader is killed, and the page shows the next one', async () => {
    const cluster = await start(2, { memory: 'processes', restartHosts: false });
    const page = await open(cluster);
    const errors = watchErrors(page);
    const leader = leaderOf(cluster, 1)!;
    await eventually(() => rowOf(page, 1)).toContain(`${leader} leads`);
    const { host } = cluster.status().groups[1].replicas[leader];
    process.kill(cluster.status().hosts[host].pid, 'SIGKILL');
    await eventually(() => rowOf(page, 1)).toContain(`${leader} down`);
    await eventually(() => rowOf(page, 1)).toMatch(/\d leads/);
    const log = page.getByRole('log', { name: 'Events' });
    await eventually(() => log.innerText()).toContain(`host ${host} is down`);
    await eventually(() => log.innerText()).toMatch(/g1\/\d( leads|.* lead) now/);
    expect(errors).toEqual([]);
    await cluster.destroy();
  });

  test('a page that loses its server says so, and comes back', async () => {
    const first = await start(1, { name: 'first' });
    const page = await open(first);
    const port = Number(new URL(first.page!).port);
    await first.destroy();
    await page.getByText('No connection to the server since').waitFor();
    const second = await start(1, { name: 'second', page: { port } });
    await page.getByRole('heading', { name: 'second' }).waitFor();
    expect(await page.getByText('No connection to the server since').count()).toBe(0);
    await second.destroy();
  });

  test('64 groups fit on screens of all sizes, and the page stays fluid', async () => {
    const cluster = await start(64, { page: { control: true } });
    let next = 0;
    const stop = await load(cluster, () => [next++ % 64, next++ % 64]);
    const page = await open(cluster);
    await page.getByRole('button', { name: 'g1', exact: true }).click();
    for (const viewport of [NARROW, WIDE]) {
      await page.setViewportSize(viewport);
      const width = () => page.evaluate(() => document.documentElement.scrollWidth);
      await eventually(width).toBeLessThanOrEqual(viewport.width);
    }
    // Each window has three pictures. A machine that does other things may stretch a task: then again.
    await expect.poll(() => longTasksIn(page, 1500), { timeout: 40_000, interval: 0 }).toBe(0);
    await stop();
    await cluster.destroy();
  });
});

test('the page is small', () => {
  const folder = fileURLToPath(new URL('../dist/live/', import.meta.url));
  const sizes = readdirSync(folder).map((name) => gzipSync(readFileSync(folder + name)).length);
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(BUNDLE_BYTES_MAX);
});
