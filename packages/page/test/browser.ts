/** Opens pages in Debian's Chromium, which `.ci/setup` installs. */
import { existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { describe } from 'vitest';

const CHROMIUM = '/usr/bin/chromium';

/** Where pictures of tests go. */
const PICTURES = fileURLToPath(new URL('../dist/pictures/', import.meta.url));

export const WIDE = { width: 1280, height: 800 };
export const NARROW = { width: 390, height: 844 };

const missing = existsSync(CHROMIUM)
  ? undefined
  : `${CHROMIUM} is missing; install it with: apt-get install chromium`;

if (missing !== undefined) console.warn(missing);

/** Tests that need the browser. On a build machine it must be there; elsewhere the tests are skipped without it. */
export const describeInBrowser = describe.skipIf(missing !== undefined && !process.env['CI']);

export function launchBrowser(): Promise<Browser> {
  if (missing !== undefined) throw new Error(missing);
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
}

/** The address of a built file, as one opens it from disk. @param path  below `dist` */
export function fromDisk(path: string): string {
  return pathToFileURL(fileURLToPath(new URL(`../dist/${path}`, import.meta.url))).href;
}

/** What the page has reported: errors of scripts, of the console and of its security policy. */
export function watchErrors(page: Page): string[] {
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  return errors;
}

export async function takePicture(page: Page, name: string): Promise<void> {
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: `${PICTURES}${name}.png` });
}

/** The serious and critical accessibility violations that `axe-core` finds. */
export async function findBarriers(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { violations } = await (
      globalThis as unknown as {
        axe: { run(options: object): Promise<{ violations: Violation[] }> };
      }
    ).axe.run({ preload: false });
    interface Violation {
      id: string;
      impact: string;
      help: string;
      nodes: { html: string }[];
    }
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(' ')}`);
  });
}

const AXE = (createRequire(import.meta.url)('axe-core') as { source: string }).source;
