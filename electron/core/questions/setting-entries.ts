import type { SettingEntry, SettingKind, SettingPart } from '../../../shared/questions.ts';

/** As much of JSON Schema as the published one uses. */
interface Schema {
  readonly description?: string;
  readonly default?: unknown;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
}

/** Every key of the config, from the schema that is published beside it. Pure. */
export function settingEntries(
  schemaText: string,
  yamlOf: (key: string) => string | null,
): readonly SettingEntry[] {
  const schema: Schema = JSON.parse(schemaText);
  return Object.entries(schema.properties ?? {}).map(([key, one]) => ({
    key,
    kind: kindOf(one),
    meaning: meaningOf(one),
    defaultText: one.default === undefined ? null : flowText(one.default),
    unit: unitOf(one),
    choices: choicesOf(one),
    parts: partsOf(one),
    yaml: yamlOf(key),
  }));
}

/** A schema and all it may be instead, without `null`. */
function shapes(schema: Schema): readonly Schema[] {
  const others = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  return [schema, ...others.flatMap(shapes)].filter((one) => one.type !== 'null');
}

function hasType(schema: Schema, type: string): boolean {
  return shapes(schema).some(
    (one) => one.type === type || (Array.isArray(one.type) && one.type.includes(type)),
  );
}

function kindOf(schema: Schema): SettingKind {
  const choices = choicesOf(schema);
  if (hasType(schema, 'array')) return 'list';
  if (isMemory(schema) && !Object.hasOwn(onlyShape(schema), 'additionalProperties')) return 'size';
  if (hasType(schema, 'object')) return 'mapping';
  if (hasType(schema, 'integer')) return 'number';
  if (choices.length > 0) return 'choice';
  return hasType(schema, 'number') ? 'duration' : 'text';
}

/** The one shape it has beside `null`. */
function onlyShape(schema: Schema): Schema {
  return shapes(schema).find((one) => one.type !== undefined) ?? schema;
}

function meaningOf(schema: Schema): string {
  return shapes(schema).find((one) => one.description !== undefined)?.description ?? '';
}

const MEMORY = 'An amount of memory';

function isMemory(schema: Schema): boolean {
  return shapes(schema).some((one) => one.description?.startsWith(MEMORY) === true);
}

function unitOf(schema: Schema): string | null {
  const all = [...shapes(schema), ...shapes(schema).flatMap(inner)];
  const memory = all.find((one) => one.description?.startsWith(MEMORY) === true);
  if (memory !== undefined)
    return memory.description?.includes('share') === true ? 'GB, MiB or % of the device' : 'GB or MiB';
  const times = all.some((one) => Array.isArray(one.type) && one.type.includes('number'));
  return times ? 's, min, h or d' : null;
}

function inner(schema: Schema): readonly Schema[] {
  const { additionalProperties } = schema;
  return typeof additionalProperties === 'object' ? shapes(additionalProperties) : [];
}

function choicesOf(schema: Schema): readonly string[] {
  const words = shapes(schema).flatMap((one) => [
    ...(one.enum ?? []),
    ...(one.const === undefined ? [] : [one.const]),
  ]);
  return words.filter((word) => typeof word === 'string');
}

/** The keys inside: of a list's items, of a mapping itself, of a mapping's values. */
function partsOf(schema: Schema): readonly SettingPart[] {
  const holders = shapes(schema).flatMap((one) => [
    ...(one.items === undefined ? [] : shapes(one.items)),
    ...inner(one),
    one,
  ]);
  const parts = new Map<string, SettingPart>();
  for (const [key, one] of holders.flatMap(({ properties }) => Object.entries(properties ?? {}))) {
    const before = parts.get(key);
    parts.set(key, {
      key,
      meaning: before?.meaning || meaningOf(one),
      choices: [...new Set([...(before?.choices ?? []), ...choicesOf(one)])],
      defaultText: before?.defaultText ?? (one.default === undefined ? null : flowText(one.default)),
    });
  }
  return [...parts.values()];
}

/** `{ atLeast: 2GB }`, as one would write it. */
function flowText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flowText).join(', ')}]`;
  if (typeof value === 'object' && value !== null)
    return `{ ${Object.entries(value)
      .map(([key, one]) => `${key}: ${flowText(one)}`)
      .join(', ')} }`;
  return String(value);
}
