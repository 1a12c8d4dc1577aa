/** Where the groups of a tree are drawn: children below their parent, each parent above the middle of its children. */

export interface Place {
  /** In columns, from the left; a group without children is one column wide. */
  readonly column: number;
  /** 0 is the root. */
  readonly depth: number;
}

export interface TreeLayout {
  /** By group. */
  readonly places: readonly Place[];
  readonly columns: number;
  readonly rows: number;
}

/** @param parents  of each group; -1 of the root */
export function layOutTree(parents: readonly number[]): TreeLayout {
  const children = parents.map((_, group) =>
    parents.flatMap((parent, child) => (parent === group ? [child] : [])),
  );
  const places: Place[] = [];
  let columns = 0;
  let rows = 0;
  const put = (group: number, depth: number): number => {
    rows = Math.max(rows, depth + 1);
    const below = children[group].map((child) => put(child, depth + 1));
    const column = below.length === 0 ? columns++ : (below[0] + below[below.length - 1]) / 2;
    places[group] = { column, depth };
    return column;
  };
  parents.forEach((parent, group) => {
    if (parent < 0) put(group, 0);
  });
  return { places, columns, rows };
}
