/** Loads the scripts that have the simulator: that of the protocol as it is, and those with a hole put back. */
import type { Run } from '../run/run.js';

export interface Subject {
  readonly Run: typeof Run;
}

const PROTOCOL = 'protocol';

const loading = new Map<string, Promise<Subject>>();

/** @param hole  the name of a hole, or undefined for the protocol as it is */
export function loadSubject(hole: string | undefined): Promise<Subject> {
  const name = hole ?? PROTOCOL;
  const known = loading.get(name);
  if (known !== undefined) return known;
  const subject = load(name, hole === undefined ? `${name}.js` : `holes/${name}.js`);
  loading.set(name, subject);
  return subject;
}

/** A classic script, because browsers load no modules from disk. It leaves its exports in a global variable. */
function load(name: string, path: string): Promise<Subject> {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = path;
    script.onload = () =>
      resolve((globalThis as unknown as Record<string, Subject>)[`tram_${name}`]);
    script.onerror = () => {
      loading.delete(name);
      reject(new Error(`can't load ${path}`));
    };
    document.head.append(script);
  });
}
