import { formatList } from '../../../../shared/format.ts';
import { httpClient } from '../http.ts';
import { parseModelsList } from '../models-list.ts';

/** What a person can do about models of a router whose files are not to be read from here; null: all are. */
export async function unreadableFiles(
  url: string,
  apiKey: string | null,
  timeoutMs: number,
  canRead: (path: string) => Promise<boolean>,
): Promise<string | null> {
  const http = httpClient(url, apiKey);
  try {
    const answer = await http.get('/models', { timeoutMs });
    const models = answer.kind === 'answer' && answer.status === 200 ? parseModelsList(answer.json) : null;
    if (models?.ok !== true) return null;
    const named = models.value.filter(({ modelPath }) => modelPath?.startsWith('/') === true);
    const readable = await Promise.all(named.map(({ modelPath }) => canRead(modelPath ?? '')));
    const names = named.filter((_, at) => readable[at] === false).map(({ name }) => name);
    if (names.length === 0) return null;
    const whose = names.length === 1 ? `the file of ${names[0]}` : `the files of ${formatList(names, 6)}`;
    return `${whose} can not be read from here, as where the server runs in a container: what that takes is known after a first load, or by \`footprints\` in the config.`;
  } finally {
    http.close();
  }
}
