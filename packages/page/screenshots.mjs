/** Takes the pictures of the documents: `npm run screenshots`. */
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const folder = fileURLToPath(new URL('../../docs/pictures/', import.meta.url));
const sim = new URL('dist/sim/index.html', import.meta.url).href;

const PICTURES = [
  { name: 'sim', fragment: 'tour=why-a-tree', keys: ['n', 'n'], colorScheme: 'light' },
  {
    name: 'sim-hole',
    fragment: 'seed=12&mutation=H2&groups=1&replicas=3&messages=150',
    keys: ['End'],
    colorScheme: 'dark',
  },
];

mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
for (const { name, fragment, keys, colorScheme } of PICTURES) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme });
  await page.goto(`${sim}#${fragment}`);
  const settle = async () => {
    await page.locator('.guide:not([aria-busy="true"])').waitFor();
    await page.locator('.moment', { hasText: /^event/ }).waitFor();
  };
  await settle();
  for (const key of keys) {
    await page.keyboard.press(key);
    await settle();
  }
  await page.screenshot({ path: `${folder}${name}.png` });
  await page.close();
  console.log(`docs/pictures/${name}.png`);
}
await browser.close();
