/**
 * Pictures of the live page: clusters of 1, 8 and 64 groups, wide and narrow, light and dark, and with a host down.
 * `npm run screenshots` writes them to `dist/pictures`, and that of the documents to `docs/pictures`.
 */
import { copyFileSync, mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { Cluster } from 'tram-multicast';

const PICTURES = fileURLToPath(new URL('dist/pictures/', import.meta.url));
const DOCUMENTED = fileURLToPath(new URL('../../docs/pictures/live.png', import.meta.url));
const SIZES = { wide: { width: 1280, height: 800 }, narrow: { width: 390, height: 844 } };
const MESSAGES_PER_TICK = 20;
const TICK_MS = 10;
const SETTLE_MS = 4000;

mkdirSync(PICTURES, { recursive: true });
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
for (const groups of [1, 8, 64]) await picture(groups);
copyFileSync(`${PICTURES}live-crash-wide.png`, DOCUMENTED);
await browser.close();

async function picture(groups) {
  const page = { port: 0, control: groups === 8 };
  const sizes = { clients: 4, logBytes: 65_536, feedBytes: 16_384, inboxBytes: 16_384 };
  const order = groups === 8 ? 'strict' : 'multicast';
  const cluster = await Cluster.start({
    name: 'bank',
    groups,
    hosts: 3,
    leaders: 'spread',
    order,
    page,
    ...sizes,
  });
  const client = await cluster.connect();
  const stop = load(client, groups);
  await pause(SETTLE_MS);
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ['light', 'dark']) {
      await take(cluster.page, `live-${groups}-${size}-${colorScheme}`, { viewport, colorScheme });
    }
  }
  if (groups === 8) await takeCrash(cluster);
  stop();
  await cluster.destroy();
}

/** A host is down, a group is open. */
async function takeCrash(cluster) {
  await cluster.crash(1);
  await pause(SETTLE_MS / 4);
  for (const [size, viewport] of Object.entries(SIZES)) {
    await take(
      cluster.page,
      `live-crash-${size}`,
      { viewport, colorScheme: 'light' },
      async (page) => {
        await page.getByRole('button', { name: 'g4', exact: true }).click();
      },
    );
  }
  await take(cluster.page, 'live-confirm', { viewport: SIZES.wide }, async (page) => {
    await page.getByRole('button', { name: 'Crash host 2' }).click();
  });
  await cluster.restart(1);
}

async function take(url, name, options, prepare = async () => {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  await page.goto(url);
  await page.getByText('live', { exact: true }).waitFor();
  await pause(1500);
  await prepare(page);
  await pause(100);
  await page.screenshot({ path: `${PICTURES}${name}.png`, fullPage: options.viewport.width < 500 });
  await context.close();
}

/** Sends to one or a few groups, at a steady rate. @returns ends it */
function load(client, groups) {
  const payload = new Uint8Array(64);
  const timer = setInterval(() => {
    for (let i = 0; i < MESSAGES_PER_TICK; i++) {
      const count = Math.min(groups, 1 + Math.floor(Math.random() * 3));
      const destinations = Array.from({ length: count }, () => Math.floor(Math.random() * groups));
      client.multicast([...new Set(destinations)], payload).catch(() => undefined);
    }
  }, TICK_MS);
  return () => clearInterval(timer);
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
