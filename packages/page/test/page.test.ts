import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findBarriers, fromDisk, launchBrowser, watchErrors } from './browser.js';

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser?.close());

describe.each(['sim', 'live'])('the built page %s', (view) => {
  it('opens from disk, without an error, and without barriers', async () => {
    const page = await browser.newPage();
    const errors = watchErrors(page);
    await page.goto(fromDisk(`${view}/index.html`));
    await page.getByRole('heading', { level: 1 }).waitFor();
    expect(await findBarriers(page)).toEqual([]);
    expect(errors).toEqual([]);
    await page.close();
  });
});
