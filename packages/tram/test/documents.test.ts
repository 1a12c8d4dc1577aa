/**
 * Every example runs, ends by itself and finds that what it claims holds; its types are right; and the documents
 * show code that runs.
 */
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ERRORS } from '../src/errors.js';
import { projectDirectory } from './built.js';

const examples = join(projectDirectory, 'examples');
const compiler = join(projectDirectory, 'node_modules', 'typescript', 'bin', 'tsc');
const names = readdirSync(examples, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

test('there are examples', () => {
  expect(names).toEqual(expect.arrayContaining(['bank', 'counter', 'inventory', 'work-queue']));
});

test.each(names)('%s', (name) => {
  const main = compiled(join(examples, name));
  const { status, stdout, stderr } = spawnSync(process.execPath, [main], { encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(stdout).toMatch(/^ok: /m);
  expect(stdout).not.toMatch(/^WRONG: /m);
  expect(status).toBe(0);
});

/** The main module of an example. Those in TypeScript are compiled: Node runs JavaScript. */
function compiled(example: string): string {
  if (!existsSync(join(example, 'main.ts'))) return join(example, 'main.js');
  const { stdout } = spawnSync(process.execPath, [compiler, '-p', example], { encoding: 'utf8' });
  expect(stdout).toBe('');
  return join(example, 'dist', 'main.js');
}

test('they are typed', () => {
  const { stdout } = spawnSync(process.execPath, [compiler, '-p', examples], { encoding: 'utf8' });
  expect(stdout).toBe('');
});

function read(path: string): string {
  return readFileSync(join(projectDirectory, path), 'utf8');
}

describe('README.md', () => {
  const text = read('README.md');

  test('its quick start prints what it says', () => {
    const directory = mkdtempSync(join(tmpdir(), 'tram-readme-'));
    mkdirSync(join(directory, 'node_modules'));
    symlinkSync(
      join(projectDirectory, 'packages/tram'),
      join(directory, 'node_modules/tram-multicast'),
    );
    writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
    const blocks = [...text.matchAll(/```js\n(\/\/ (\w+\.js)\n[^`]*)```/g)];
    expect(blocks.map(([, , name]) => name)).toEqual(['service.js', 'main.js']);
    for (const [, code, name] of blocks) writeFileSync(join(directory, name!), code!);
    const { stdout, stderr } = spawnSync(process.execPath, [join(directory, 'main.js')], {
      encoding: 'utf8',
    });
    rmSync(directory, { recursive: true });
    const [, said] = /console\.log\(.*\); \/\/ (.*)/.exec(text)!;
    expect({ stdout, stderr }).toEqual({ stdout: `${said}\n`, stderr: '' });
  });

  test('its quick start has fifteen lines', () => {
    const code = [...text.matchAll(/```js\n([^`]*)```/g)].map(([, block]) => block!).join('');
    const lines = code.split('\n').filter((line) => line !== '' && !line.startsWith('//'));
    expect(lines.length).toBeLessThanOrEqual(15);
  });
});

test.each(['docs/api.md', 'docs/durability.md', 'docs/upgrading.md'])(
  'the code in %s stands in the examples',
  (path) => {
    const text = read(path);
    const named = [
      ...text.matchAll(/<!-- (examples\/\S+) -->\n```[jt]s\n([^`]*(?:`[^`]+`[^`]*)*?)```\n/g),
    ];
    expect(named.length).toBeGreaterThan(2);
    expect(named).toHaveLength(text.match(/^```[jt]s$/gm)!.length);
    for (const [, example, code] of named) expect(read(example!)).toContain(code);
  },
);

describe('docs/api.md', () => {
  const text = read('docs/api.md');

  test.each([
    ['Cluster', 'cluster', 'cluster'],
    ['AttachedCluster', 'attached-cluster', 'attached'],
    ['Client', 'client', 'client'],
  ])('it has all that is public of %s', (name, module, variable) => {
    const [, body] = read(`packages/tram/dist/types/${module}.d.ts`).split(
      `export declare class ${name} `,
    );
    const members = [...body!.matchAll(/^ {4}(static |readonly |get )?(\w+)[(:]/gm)];
    expect(members.length).toBeGreaterThan(5);
    for (const [, kind, member] of members) {
      const owner = kind === 'static ' ? name : variable;
      expect(text).toContain(`\`${owner}.${member}`);
    }
  });
});

describe('all documents', () => {
  /** Of the environment. */
  const VARIABLES = ['TRAM_DEBUG', 'TRAM_STORE_PASSWORD', 'TRAM_WARM_UP'];
  const documents = [
    'README.md',
    ...readdirSync(join(projectDirectory, 'docs'))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`),
  ];

  test.each(documents)('%s links to what is there', (path) => {
    const links = [...read(path).matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, link]) => link!);
    const broken = links.filter(
      (link) => !/^https?:/.test(link) && !isThere(join(path, '..', link)),
    );
    expect(broken).toEqual([]);
  });

  test.each(documents)('%s mentions only codes that exist', (path) => {
    const codes = read(path).match(/\bTRAM_[A-Z_]+\b/g) ?? [];
    expect(codes.filter((code) => !(code in ERRORS) && !VARIABLES.includes(code))).toEqual([]);
  });

  function isThere(path: string): boolean {
    return existsSync(join(projectDirectory, path));
  }
});
