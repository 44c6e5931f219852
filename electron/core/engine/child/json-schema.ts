import type { GbnfJsonSchema } from 'node-llama-cpp';

type Fields = Readonly<Record<string, unknown>>;

/**
 * A JSON Schema in the words that node-llama-cpp turns into a grammar (its utils/gbnfJson/types.d.ts):
 * `anyOf` is its `oneOf`, a single `allOf` is what it holds, and what it has no word for is left out, so
 * that the grammar allows more than the schema, never less.
 */
export function engineSchema(schema: unknown): GbnfJsonSchema {
  return mapped(schema) as GbnfJsonSchema;
}

/** The same for a whole answer; the library works out its kind as it reads it, so one stands for all. */
export function wholeSchema(schema: unknown): { readonly type: 'object' } {
  return mapped(schema) as { readonly type: 'object' };
}

const KEPT = [
  'type',
  'description',
  'format',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'required',
  '$ref',
] as const;

function mapped(schema: unknown): unknown {
  // `true` and `{}` allow anything.
  if (!isFields(schema)) return { type: ['object', 'array', 'string', 'number', 'boolean', 'null'] };
  if ('const' in schema) return { const: schema.const };
  if (Array.isArray(schema.enum)) return { enum: schema.enum };
  const either = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(either)) return withDefinitions(schema, { oneOf: either.map(mapped) });
  if (Array.isArray(schema.allOf) && schema.allOf.length === 1) return mapped(schema.allOf[0]);
  const kept: Record<string, unknown> = {};
  for (const key of KEPT) if (schema[key] !== undefined) kept[key] = schema[key];
  if (isFields(schema.properties)) kept.properties = mappedEach(schema.properties);
  if (isFields(schema.items)) kept.items = mapped(schema.items);
  if (Array.isArray(schema.prefixItems)) kept.prefixItems = schema.prefixItems.map(mapped);
  if (typeof schema.additionalProperties === 'boolean')
    kept.additionalProperties = schema.additionalProperties;
  else if (isFields(schema.additionalProperties))
    kept.additionalProperties = mapped(schema.additionalProperties);
  if (kept.type === undefined && kept.$ref === undefined) {
    kept.type = kept.properties !== undefined ? 'object' : kept.items !== undefined ? 'array' : 'object';
  }
  return withDefinitions(schema, kept);
}

function withDefinitions(schema: Fields, made: Record<string, unknown>): Record<string, unknown> {
  const { $defs, definitions } = schema;
  const all = { ...(isFields(definitions) ? definitions : {}), ...(isFields($defs) ? $defs : {}) };
  return Object.keys(all).length === 0 ? made : { ...made, $defs: mappedEach(all) };
}

function mappedEach(fields: Fields): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, mapped(value)]));
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
