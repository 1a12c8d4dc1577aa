/** The page of the simulator, as tests use it. */
import type { Browser, Page } from 'playwright-core';
import { fromDisk, WIDE, watchErrors } from './browser.js';

/** Long runs take a few seconds on a busy machine. */
const TIMEOUT_MS = 20_000;

export interface SimPage {
  readonly page: Page;
  readonly errors: readonly string[];
}

export async function openSim(browser: Browser, fragment = '', viewport = WIDE): Promise<SimPage> {
  const page = await browser.newPage({ viewport });
  page.setDefaultTimeout(TIMEOUT_MS);
  const errors = watchErrors(page);
  await page.goto(fromDisk('sim/index.html') + (fragment === '' ? '' : `#${fragment}`));
  await settled(page);
  return { page, errors };
}

/** Wait until the page shows a moment of a run, and is not on its way to another one. */
export async function settled(page: Page): Promise<void> {
  await page.locator('.moment', { hasText: /^event/ }).waitFor();
}

/** Press keys, one after the other, and wait for what each does. */
export async function press(page: Page, ...keys: string[]): Promise<void> {
  for (const key of keys) {
    await page.keyboard.press(key);
    await settled(page);
  }
}

/** All that the page says about the run: time, tables, story. */
export async function stateOf(page: Page): Promise<string[]> {
  return page
    .locator('.moment, section[aria-label="The state as tables"], .story ol')
    .allInnerTexts();
}

export async function eventsOf(page: Page): Promise<number> {
  const text = await page.locator('.moment').innerText();
  return Number(/event ([\d,]+)/.exec(text)![1].replaceAll(',', ''));
}

export function fragmentOf(page: Page): string {
  return new URL(page.url()).hash.slice(1);
}
