/** The simulator in a real browser, opened from disk. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Browser } from 'playwright-core';
import { formatLink, type RunLink } from 'tram-lab/dist/sim/link.js';
import { HOLES } from 'tram-lab/dist/sim/mutations/holes.js';
import { VIOLATIONS } from 'tram-lab/dist/sim/mutations/judged.js';
import { loadMutant } from 'tram-lab/dist/sim/mutations/mutant.js';
import type { BySeed } from 'tram-lab/dist/sim/mutations/mutation.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TOURS } from '../src/sim/tours.js';
import { timeText } from '../src/sim/words.js';
import {
  describeInBrowser,
  findBarriers,
  launchBrowser,
  NARROW,
  takePicture,
  watchErrors,
} from './browser.js';
import { eventsOf, fragmentOf, openSim, press, settled, stateOf } from './sim-page.js';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};

const STEP = 'ArrowRight';
const BACK = 'ArrowLeft';

const drawn = (seed: number, more: Partial<RunLink> = {}): string =>
  formatLink({ seed, options: {}, deeds: [], events: 0, ...more });

it('is small', () => {
  const bytes = ['page.js', 'page.css', 'protocol.js', 'index.html'].map((file) => {
    const path = fileURLToPath(new URL(`../dist/sim/${file}`, import.meta.url));
    return gzipSync(readFileSync(path)).length;
  });
  expect(bytes.reduce((sum, each) => sum + each)).toBeLessThan(200_000);
});

describeInBrowser('in a browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  describe('a cluster of the user', () => {
    it('shows a multicast step by step, and forwards again what it has shown backwards', async () => {
      const { page, errors } = await openSim(browser);
      await press(page, '1', 'm');
      const states = [await stateOf(page)];
      for (let i = 0; i < 12; i++) {
        await press(page, STEP);
        states.push(await stateOf(page));
      }
      expect(new Set(states.map((state) => state.join())).size).toBe(states.length);
      for (const state of states.slice(1, -1).reverse()) {
        await press(page, BACK);
        expect(await stateOf(page)).toEqual(state);
      }
      for (const state of states.slice(2)) {
        await press(page, STEP);
        expect(await stateOf(page)).toEqual(state);
      }
      expect(errors).toEqual([]);
      await page.close();
    });

    it('is broken by keys, and a link restores the run', async () => {
      const { page, errors } = await openSim(browser);
      await press(page, 'm', STEP, STEP, 'p', ']', 'm', ']', ']', 'r', 'j', 'x', ']', 'r', ']');
      await press(
        page,
        'c',
        'End',
        'R',
        'd',
        ']',
        'e',
        's',
        'e',
        'w',
        'g',
        ']',
        'G',
        ']',
        'w',
        'End',
      );
      const shown = await stateOf(page);
      for (const told of [
        '0/0 pauses',
        '0/0 resumes',
        '0/1 is killed',
        '0/1 comes back to its memory',
        '0/1 crashes',
        '0/1 restarts with empty memory',
        'cut 0/1 -> 0/0',
        'slow 0/0 -> 0/1 by 200us',
        'mend 0/1 -> 0/0',
        'weather torn=100',
        '0/1 campaigns',
      ])
        expect(shown.join()).toContain(told);
      const again = await openSim(browser, fragmentOf(page));
      expect(await stateOf(again.page)).toEqual(shown);
      await press(page, 'v');
      expect(await page.getByRole('region', { name: 'The judge' }).innerText()).toContain(
        'uniform prefix order\t✓ holds',
      );
      expect([...errors, ...again.errors]).toEqual([]);
      await page.close();
      await again.page.close();
    });

    it('undoes what was done, and says why something can’t be done', async () => {
      const { page } = await openSim(browser);
      const before = await stateOf(page);
      await press(page, 'c');
      expect(await stateOf(page)).not.toEqual(before);
      await press(page, 'c');
      expect(await page.getByRole('alert').innerText()).toBe('0/0 is down already');
      await press(page, 'u');
      expect(await stateOf(page)).toEqual(before);
      await page.close();
    });

    it.each([
      [drawn(2), 'd', 'This run is on shared memory, which has no links'],
      [drawn(3, { options: { durability: 'always' } }), 'c', 'Replicas of hosts with disks do not'],
    ])('refuses in the run %s what the key %s would do', async (fragment, key, reason) => {
      const { page } = await openSim(browser, fragment);
      await press(page, STEP, key);
      expect(await page.getByRole('alert').innerText()).toContain(reason);
      await page.close();
    });

    it.each([
      ['seed=-1', 'seed=-1 is not a number'],
      ['mutation=../page', 'there is no hole ../page'],
    ])('says that the link %s is no run', async (fragment, reason) => {
      const { page } = await openSim(browser, fragment);
      expect(await page.getByRole('alert').innerText()).toContain(reason);
      await page.close();
    });
  });

  describe('a seed gives the same run as on the command line', () => {
    it.each([
      ['on links', 7, {}],
      ['on shared memory, with interruptions', 2, {}],
      ['with power cuts', 3, { durability: 'always', groups: 2, replicas: 3, messages: 60 }],
    ] as const)('%s', async (_, seed, options) => {
      const { simulate } = await loadMutant();
      const { world, failure } = simulate(seed, options, { keepsTrace: true });
      expect(failure).toBeUndefined();
      const { page } = await openSim(browser, drawn(seed, { options }));
      await press(page, 'End');
      const { messages, deliveries } = world.ledger;
      const verdict = await page.getByRole('region', { name: 'The judge' }).innerText();
      expect(verdict).toContain(`${messages} messages, ${deliveries} deliveries`);
      const time = await page.locator('.moment').innerText();
      expect(time).toContain(timeText(world.nowUs));
      await page.close();
    });
  });

  it('runs from a web server too', async () => {
    const folder = fileURLToPath(new URL('../dist/sim/', import.meta.url));
    const server = createServer((request, response) => {
      const path = new URL(request.url!, 'http://localhost').pathname;
      response.writeHead(200, { 'content-type': TYPES[extname(path)] });
      response.end(readFileSync(join(folder, path)));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const page = await browser.newPage();
    const errors = watchErrors(page);
    const { port } = server.address() as AddressInfo;
    await page.goto(`http://127.0.0.1:${port}/index.html#${drawn(4, { mutation: 'H4' })}`);
    await settled(page);
    await press(page, STEP);
    expect(errors).toEqual([]);
    await page.close();
    server.close();
  });

  describe('a hole', () => {
    it.each(['H2', 'H11', 'H26'])(
      '%s: the judge rejects the run, with its witness',
      async (name) => {
        const { seed, options } = VIOLATIONS[name];
        const { runSeed } = await loadMutant(name);
        const { failure, details } = runSeed(seed, options, true);
        const { page, errors } = await openSim(browser, drawn(seed, { options, mutation: name }));
        expect(await page.locator('.guide').innerText()).toContain(HOLES[name].title);
        await press(page, 'End');
        const verdict = await page.getByRole('region', { name: 'The judge' }).innerText();
        expect(verdict).toContain(failure!.message);
        for (const found of details!.verdict.properties) {
          if (found.outcome === 'violated') expect(verdict).toContain(found.witness);
        }
        expect(await page.locator('.verdict .cell.witness').count()).toBeGreaterThan(0);
        expect(errors).toEqual([]);
        expect(await findBarriers(page)).toEqual([]);
        await takePicture(page, `hole-${name}`);
        await page.close();
      },
    );

    it('is chosen by key, and the same seed holds without it', async () => {
      const { page } = await openSim(browser);
      await page.keyboard.press('H');
      await page.getByRole('button', { name: /^H1 / }).click();
      await page.locator('.guide').waitFor();
      await settled(page);
      await press(page, 'End');
      expect(await page.locator('.verdict').innerText()).toContain('✕ violated');
      await page.getByRole('button', { name: 'The same seed without the hole' }).click();
      await page.locator('.guide', { hasText: 'nothing is wrong' }).waitFor();
      await press(page, 'End');
      expect(await page.locator('.verdict').innerText()).not.toContain('✕ violated');
      await page.close();
    });

    it('H15 breaks no property, but the simulator stops the run', async () => {
      const { seed, as } = HOLES['H15'].caughtBy as BySeed;
      const { page } = await openSim(browser, drawn(seed, { mutation: 'H15' }));
      await press(page, 'End');
      expect(await page.locator('.failure').innerText()).toContain(`stops the run: ${as}`);
      await page.close();
    });
  });

  describe('a tour', () => {
    it.each(TOURS.map(({ name, stops }) => [name, stops.length]))(
      '%s runs to its end',
      async (name, stops) => {
        const { page, errors } = await openSim(browser, `tour=${name}`);
        const seen: string[][] = [];
        for (let stop = 1; stop <= stops; stop++) {
          if (stop > 1) await page.keyboard.press('n');
          await page.locator('.guide[aria-busy="false"]', { hasText: `Stop ${stop} of` }).waitFor();
          await settled(page);
          expect(await page.getByRole('alert').count()).toBe(0);
          seen.push(await stateOf(page));
        }
        expect(await page.locator('.verdict').innerText()).not.toMatch(/violated|not known/);
        await takePicture(page, `tour-${name}`);
        expect(fragmentOf(page)).toBe(`tour=${name}&stop=${stops}`);
        await page.reload();
        await page.locator('.guide[aria-busy="false"]', { hasText: `Stop ${stops} of` }).waitFor();
        expect(await stateOf(page)).toEqual(seen.at(-1));
        await page.keyboard.press('b');
        await page
          .locator('.guide[aria-busy="false"]', { hasText: `Stop ${stops - 1} of` })
          .waitFor();
        expect(await stateOf(page)).toEqual(seen.at(-2));
        expect(errors).toEqual([]);
        await page.close();
      },
    );
  });

  describe('everybody can use it', () => {
    it.each(['light', 'dark'] as const)(
      'without barriers, in the %s theme',
      async (colorScheme) => {
        const { page } = await openSim(browser);
        await page.emulateMedia({ colorScheme });
        await press(page, '1', '2', 'm', STEP, STEP, STEP, 'j', 'p', 'j', 'x', 't', 'v');
        expect(await findBarriers(page)).toEqual([]);
        for (const key of ['T', 'H', 'N', 'l', '?']) {
          await page.keyboard.press(key);
          await page.locator('dialog').waitFor();
          expect(await findBarriers(page)).toEqual([]);
          await page.keyboard.press('Escape');
        }
        await page.close();
      },
    );

    it('every action has a key of its own', async () => {
      const { page } = await openSim(browser);
      await page.keyboard.press('?');
      const keys = await page.locator('dialog dt').allInnerTexts();
      expect(new Set(keys).size).toBe(keys.length);
      const shown = await page.locator('button[aria-keyshortcuts]').count();
      expect(shown).toBeGreaterThan(15);
      await page.close();
    });

    it('fits on a telephone', async () => {
      const { page } = await openSim(browser, '', NARROW);
      await press(page, '1', 'm', STEP);
      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect(width).toBe(NARROW.width);
      await takePicture(page, 'narrow');
      await page.close();
    });

    it('plays by itself', async () => {
      const { page } = await openSim(browser);
      const before = await eventsOf(page);
      await press(page, 'm');
      await page.keyboard.press('Space');
      await expect.poll(() => eventsOf(page)).toBeGreaterThan(before);
      await page.keyboard.press('Space');
      await page.close();
    });
  });
});
