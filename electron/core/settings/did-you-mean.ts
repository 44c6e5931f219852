/**
 * The known word an unknown one was most likely meant to be; null when none is near. Case, `_` and
 * `-` do not count (`max_big` is `maxBig`); beyond that one slip for short words, two for longer ones.
 */
export function nearest(unknown: string, known: readonly string[]): string | null {
  const wanted = bare(unknown);
  let best: { readonly word: string; readonly distance: number } | null = null;
  for (const word of known) {
    const distance = editDistance(wanted, bare(word));
    const allowed = Math.min(wanted.length, word.length) <= 4 ? 1 : 2;
    if (distance <= allowed && (best === null || distance < best.distance)) best = { word, distance };
  }
  return best?.word ?? null;
}

/** Insertions, deletions, replacements and swaps of neighbours that turn one word into the other. */
export function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1];
      let cost = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      if (row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]) {
        cost = Math.min(cost, (beforeLast[column - 2] ?? 0) + 1);
      }
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length] ?? 0;
}

function bare(word: string): string {
  return word.toLowerCase().replace(/[_-]/g, '');
}
