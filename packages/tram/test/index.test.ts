/** The library runs without any package; what needs one names it. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectDirectory } from './built.js';

const source = join(projectDirectory, 'packages/tram');
const packages = Object.keys(
  JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')).optionalDependencies,
);

let directory: string;

/** A copy of the library, where every package is broken. */
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'tram-alone-'));
  cpSync(join(source, 'dist'), join(directory, 'dist'), { recursive: true });
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
  for (const name of packages) {
    // Hides one that a folder above may have.
    const folder = join(directory, 'node_modules', name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{"main":"missing.js"}');
  }
});

afterAll(() => rmSync(directory, { recursive: true }));

/** Runs a program beside the library, and reads the JSON that it prints. */
function outputOf(program: string): unknown {
  const path = join(directory, 'program.js');
  writeFileSync(path, `import { Client, Cluster } from './dist/index.js';\n${program}`);
  const { stdout, stderr } = spawnSync(process.execPath, [path], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

/** What a call of the library fails with. */
function failureOf(call: string): unknown {
  return outputOf(`
    const error = await ${call}.catch((thrown) => thrown);
    const { name, code, message, hint, cause } = error;
    console.log(JSON.stringify({ name, code, message, hint, cause: cause?.code }));
  `);
}

test('there are packages to do without', () => {
  expect(packages).toEqual(['commander', 'koffi', 'pino', 'yaml']);
});

test('a cluster of threads needs none', () => {
  const program = `
    const cluster = await Cluster.start({ groups: 2, hosts: 1, replicas: 1 });
    const client = await cluster.connect();
    const replies = await client.multicast([0, 1], new Uint8Array(1));
    await cluster.close();
    console.log(JSON.stringify([...replies.keys()].sort()));
  `;
  expect(outputOf(program)).toEqual([0, 1]);
});

test('a cluster of processes needs koffi', () => {
  expect(failureOf("Cluster.start({ groups: 1, memory: 'processes' })")).toMatchObject({
    name: 'TramError',
    code: 'TRAM_NATIVE_MISSING',
    hint: 'npm install koffi',
  });
});

test('a configuration file needs yaml', () => {
  writeFileSync(join(directory, 'cluster.yaml'), 'groups: 2\n');
  const file = JSON.stringify(join(directory, 'cluster.yaml'));
  expect(failureOf(`Client.connect(${file})`)).toEqual({
    name: 'TramError',
    code: 'TRAM_PACKAGE_MISSING',
    message: "configuration files need the package yaml, which can't be loaded",
    hint: 'npm install yaml',
    cause: 'ERR_MODULE_NOT_FOUND',
  });
});
