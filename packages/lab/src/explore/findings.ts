/**
 * What the explorer has found of each mutation: a script that shows it in some scope; or why no scope shows it. The tests
 * replay every script, with the mutation and without it.
 */

export interface Finding {
  readonly scope: string;
  readonly script: string;
}

export const FINDINGS: Readonly<Record<string, Finding>> = {
  H11: { scope: 'takeover', script: 'cB B>C aD B>C A>B C>B B>C B>C B>C B>C B>C' },
};

export const NOT_FOUND: Readonly<Record<string, string>> = {};
