/** Files and processes of servers that a benchmark has started and not removed. */
import { readdirSync, readlinkSync } from 'node:fs';

/** @param pid  of the benchmark. @param folders  in which servers keep files */
export function remainsOf(pid: number, folders: Iterable<string>): string[] {
  const mark = `tram-peer-${pid}-`;
  const files = [...new Set(folders)].flatMap((folder) =>
    readdirSync(folder).filter((name) => name.startsWith(mark)),
  );
  const servers = readdirSync('/proc').filter((entry) => workingFolder(entry).includes(mark));
  return [...files, ...servers];
}

function workingFolder(entry: string): string {
  try {
    return /^\d+$/.test(entry) ? readlinkSync(`/proc/${entry}/cwd`) : '';
  } catch {
    // The process has ended meanwhile.
    return '';
  }
}
