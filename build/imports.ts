/** Every way a source file names another: read from its syntax tree, so that comments and strings do not count. */
import { parseSync, Visitor } from 'vite';

export interface ImportRef {
  /** As written; null when it is computed at run time. */
  readonly specifier: string | null;
  /** From 1. */
  readonly line: number;
  /** Erased before it runs. */
  readonly typeOnly: boolean;
}

export type Imports =
  | { readonly ok: true; readonly imports: readonly ImportRef[] }
  | { readonly ok: false; readonly message: string };

/** Worker and asset files that are named by `new URL('./x.ts', import.meta.url)` are imports too. */
const CODE_FILE = /\.(?:[cm]?[jt]s|[jt]sx)$/;

export function importsOf(fileName: string, source: string): Imports {
  const parsed = parseSync(fileName, source);
  const error = parsed.errors[0];
  if (error !== undefined) return { ok: false, message: error.message };

  const imports: ImportRef[] = [];
  const add = (specifier: string | null, start: number, typeOnly: boolean): void => {
    imports.push({ specifier, line: lineAt(source, start), typeOnly });
  };
  const literal = (node: { readonly type: string }): string | null => {
    if (node.type === 'Literal' && 'value' in node && typeof node.value === 'string') return node.value;
    if (node.type !== 'TemplateLiteral' || !('quasis' in node) || !Array.isArray(node.quasis)) return null;
    // A template without holes is as good as a string.
    const only: unknown = node.quasis.length === 1 ? node.quasis[0] : null;
    return isTemplatePart(only) ? only.value.cooked : null;
  };

  new Visitor({
    ImportDeclaration: (node) => add(node.source.value, node.start, node.importKind === 'type'),
    ExportAllDeclaration: (node) => add(node.source.value, node.start, node.exportKind === 'type'),
    ExportNamedDeclaration: (node) => {
      if (node.source !== null) add(node.source.value, node.start, node.exportKind === 'type');
    },
    ImportExpression: (node) => add(literal(node.source), node.start, false),
    TSImportType: (node) => add(literal(node.source), node.start, true),
    TSExternalModuleReference: (node) => add(literal(node.expression), node.start, false),
    CallExpression: (node) => {
      const { callee } = node;
      const isRequire =
        (callee.type === 'Identifier' && callee.name === 'require') ||
        (callee.type === 'MemberExpression' &&
          callee.object.type === 'Identifier' &&
          callee.object.name === 'require');
      if (!isRequire) return;
      const first = node.arguments[0];
      add(first === undefined ? null : literal(first), node.start, false);
    },
    NewExpression: (node) => {
      if (node.callee.type !== 'Identifier' || node.callee.name !== 'URL') return;
      const [first, base] = node.arguments;
      if (first === undefined || base === undefined) return;
      const target = literal(first);
      if (target === null || !CODE_FILE.test(target)) return;
      if (source.slice(base.start, base.end) === 'import.meta.url') add(target, node.start, false);
    },
  }).visit(parsed.program);
  return { ok: true, imports: imports.sort((a, b) => a.line - b.line) };
}

function isTemplatePart(part: unknown): part is { readonly value: { readonly cooked: string } } {
  if (typeof part !== 'object' || part === null || !('value' in part)) return false;
  const { value } = part;
  return typeof value === 'object' && value !== null && 'cooked' in value && typeof value.cooked === 'string';
}

function lineAt(source: string, offset: number): number {
  let line = 1;
  for (let at = source.indexOf('\n'); at >= 0 && at < offset; at = source.indexOf('\n', at + 1)) line += 1;
  return line;
}
