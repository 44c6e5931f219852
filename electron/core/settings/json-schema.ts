import { z } from 'zod';
import { configSchema } from './schema.ts';

const DEFAULT_KEY = 'x-default';

/**
 * The schema published beside the config, for editors. They find it by a first line
 * `# yaml-language-server: $schema=config.schema.json`. Draft 7, which is what that server knows best.
 */
export function jsonSchemaText(): string {
  const schema = z.toJSONSchema(configSchema, {
    io: 'input',
    target: 'draft-7',
    override: ({ jsonSchema }) => {
      // zod drops `default` from what it takes as text and gives as a number, so it travels under this name.
      const { [DEFAULT_KEY]: shown } = jsonSchema;
      if (shown === undefined) return;
      delete jsonSchema[DEFAULT_KEY];
      jsonSchema.default = JSON.parse(JSON.stringify(shown));
    },
  });
  return `${JSON.stringify(schema, null, 2)}\n`;
}
