/** The table of mutations in docs/explorer.md: replays every finding. */
import { MUTATIONS } from '../sim/mutations/table.js';
import { FINDINGS, NOT_FOUND } from './findings.js';
import { loadExplorer } from './mutant.js';

export async function findingsTable(): Promise<string> {
  const lines = ['| mutation | scope | actions | violation |', '|---|---|---|---|'];
  for (const [name, { scope, script }] of Object.entries(FINDINGS)) {
    const { replay, parseScript, SCOPES } = await loadExplorer(name);
    const found = replay(SCOPES.get(scope)!, parseScript(script));
    const kind = found?.message.split(':')[0] ?? 'NOT FOUND';
    const actions = found?.actions.length ?? '';
    lines.push(`| \`${name}\`: ${MUTATIONS[name].title} | \`${scope}\` | ${actions} | ${kind} |`);
  }
  lines.push('', '| not found | why |', '|---|---|');
  for (const [name, why] of Object.entries(NOT_FOUND)) {
    lines.push(`| \`${name}\`: ${MUTATIONS[name].title} | ${why} |`);
  }
  return `${lines.join('\n')}\n`;
}
