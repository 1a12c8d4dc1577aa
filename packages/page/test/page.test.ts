import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  describeInBrowser,
  findBarriers,
  fromDisk,
  launchBrowser,
  watchErrors,
} from './browser.js';

describeInBrowser('each view', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  it.each(['sim', 'live'])(
    '%s opens from disk, without an error, and without barriers',
    async (view) => {
      const page = await browser.newPage();
      const errors = watchErrors(page);
      await page.goto(fromDisk(`${view}/index.html`));
      await page.getByRole('heading', { level: 1 }).waitFor();
      expect(await findBarriers(page)).toEqual([]);
      expect(errors).toEqual([]);
      await page.close();
    },
  );
});
