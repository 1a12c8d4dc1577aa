/** The setting that is recorded with every result. */
import { expect, test } from 'vitest';
import { currentSetting } from '../../../src/bench/paper/setting.js';

test('has a fingerprint of the code, and no path of this machine', () => {
  const setting = currentSetting('quick', 'threads');
  expect(setting.code).toMatch(/^[0-9a-f]{12}$/);
  expect(JSON.stringify(setting)).not.toContain(process.cwd());
});
