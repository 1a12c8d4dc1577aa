/**
 * Writes the tables of commands into docs/store.md, from the table that the store itself uses. Run it, after `npm run build`, whenever
 * that has changed. With `--check` it only tells, by its exit code, whether the document is up to date.
 *
 *   node packages/store/scripts/command-tables.mjs [--check]
 *
 * `redis-7.0-commands.txt` has the names of all commands of Redis 7.0.15, as `COMMAND LIST FILTERBY PATTERN *` lists them.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { CONTAINERS } from '../dist/commands/lookup.js';
import { COMMANDS, COMMANDS_BY_NAME } from '../dist/commands/table.js';

const BEGIN = '<!-- commands: begin -->\n';
const END = '<!-- commands: end -->\n';

const FAMILIES = new Map([
  ['string', 'Strings and counters'],
  ['bitmap', 'Bits'],
  ['generic', 'Keys'],
  ['hash', 'Hashes'],
  ['list', 'Lists'],
  ['set', 'Sets'],
  ['sorted-set', 'Sorted sets'],
  ['hyperloglog', 'HyperLogLog'],
  ['geo', 'Places'],
  ['stream', 'Streams'],
  ['transactions', 'Transactions'],
  ['scripting', 'Scripts and functions'],
  ['pubsub', 'Channels'],
  ['connection', 'Connections'],
  ['cluster', 'Clusters of Redis'],
  ['server', 'Server'],
]);

const documentFile = new URL('../../../docs/store.md', import.meta.url);
const NAMES_OF_REDIS = readFileSync(new URL('./redis-7.0-commands.txt', import.meta.url), 'utf8')
  .trim()
  .split('\n');

const text = readFileSync(documentFile, 'utf8');
const begin = text.indexOf(BEGIN) + BEGIN.length;
const end = text.indexOf(END);
if (begin < BEGIN.length || end < begin) throw new Error('docs/store.md has lost its marks');
const written = text.slice(0, begin) + tables() + text.slice(end);
if (!process.argv.includes('--check')) writeFileSync(documentFile, written);
else if (written !== text) {
  process.stderr.write('docs/store.md has other commands than the store\n');
  process.exitCode = 1;
}

function tables() {
  const unknown = COMMANDS.find(({ category }) => !FAMILIES.has(category));
  if (unknown !== undefined) throw new Error(`there is no family ${unknown.category}`);
  const families = [...FAMILIES].map(([category, title]) => {
    const commands = COMMANDS.filter((command) => command.category === category);
    return commands.length === 0 ? '' : `\n### ${title}\n\n${table(commands)}`;
  });
  return `${families.join('')}\n### Missing\n\n${missing()}\n`;
}

function table(commands) {
  const rows = commands
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(
      (command) => `| ${printed(command.name)} | ${classOf(command)} |${differences(command)} |`,
    );
  return `| command | class | differences from Redis 7.0 |\n|---|---|---|\n${rows.join('\n')}\n`;
}

function printed(name) {
  return `\`${name.toUpperCase().replace('|', ' ')}\``;
}

/** Who carries it out. */
function classOf(command) {
  const { name, flags, keys, findKeys, patterns, spread, run } = command;
  if (name === 'exec')
    return 'that of its commands; with watched keys of several shards: coordinated';
  if (name === 'watch') return 'one shard, or independent';
  if (run === undefined) return 'gateway';
  if (keys === undefined && findKeys === undefined) {
    return spread !== undefined && partsOf(command) > 1 ? 'independent' : 'one shard';
  }
  const hasOneKey = findKeys === undefined && keys.first === keys.last;
  if (hasOneKey && patterns === undefined) return 'one shard';
  const several = spread === undefined ? 'coordinated' : 'independent';
  return `one shard, or ${several}${flags.includes('blocking') ? '; may wait' : ''}`;
}

/** How many of four shards carry out a command without keys. Its arguments are numbers, each of another shard. */
function partsOf({ arity, spread }) {
  const args = Array.from({ length: Math.abs(arity) }, (_, i) => String(i));
  return spread.split(args, Number, 4).length;
}

/** As a sentence. */
function differences({ name, differs }) {
  const isNew = !NAMES_OF_REDIS.includes(name) ? [' Of a later version of Redis.'] : [];
  if (name.endsWith('|help')) return ' In other words.';
  if (differs === undefined) return isNew.join('');
  const sentence = differs[0].toUpperCase() + differs.slice(1);
  return `${isNew.join('')} ${sentence}${sentence.endsWith('.') ? '' : '.'}`;
}

/** The commands of Redis that the store does not have. Of containers that are missing as a whole, only their name. */
function missing() {
  const subcommandsOf = (name) => NAMES_OF_REDIS.filter((other) => other.startsWith(`${name}|`));
  // A command that does without subcommands takes those of Redis as arguments.
  const takesAnything = (name) => COMMANDS_BY_NAME.has(name) && !CONTAINERS.has(name);
  const isMissing = (name) => !COMMANDS_BY_NAME.has(name) && !takesAnything(name.split('|')[0]);
  const wholly = (name) => subcommandsOf(name).length > 0 && subcommandsOf(name).every(isMissing);
  const listed = NAMES_OF_REDIS.filter((name) => {
    if (name.includes('|')) return isMissing(name) && !wholly(name.split('|')[0]);
    return subcommandsOf(name).length > 0 ? wholly(name) : isMissing(name);
  });
  return `${listed.map(printed).join(', ')}.`;
}
