/** The table of mutations in docs/explorer.md: replays every finding. */
import { MUTATIONS } from '../sim/mutations/table.js';
import { FINDINGS, NOT_FOUND, NOT_SEARCHED } from './findings.js';
import { loadExplorer } from './mutant.js';

export async function findingsTable(): Promise<string> {
  const lines = ['| mutation | scope | actions | violation |', '|---|---|---|---|'];
  for (const [name, { scope, script, mayBeShorter }] of Object.entries(FINDINGS)) {
    const { replay, parseScript, SCOPES } = await loadExplorer(name);
    const found = replay(SCOPES.get(scope)!, parseScript(script));
    const kind = found?.message.split(':')[0] ?? 'NOT FOUND';
    const actions = `${mayBeShorter ? 'at most ' : ''}${found?.actions.length}`;
    lines.push(`| \`${name}\`: ${MUTATIONS[name].title} | \`${scope}\` | ${actions} | ${kind} |`);
  }
  for (const [title, reasons] of [
    ['not found in the swept scopes', NOT_FOUND],
    ['not searched', NOT_SEARCHED],
  ] as const) {
    lines.push('', `| ${title} | why |`, '|---|---|');
    for (const [name, why] of Object.entries(reasons)) {
      lines.push(`| \`${name}\`: ${MUTATIONS[name].title} | ${why} |`);
    }
  }
  return `${lines.join('\n')}\n`;
}
