/**
 * Provenance lines that stand above the output in a saved file: `# source: …`, or the same as an
 * XML comment. They are no part of what the tool printed.
 */
export function stripSourceLines(text: string): string {
  let rest = text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n');
  for (;;) {
    const found = /^\s*(?:#\s*source\b[^\n]*(?:\n|$)|<!--\s*#?\s*source\b[\s\S]*?-->[ \t]*(?:\n|$))/.exec(
      rest,
    );
    if (found === null) return rest;
    rest = rest.slice(found[0].length);
  }
}
