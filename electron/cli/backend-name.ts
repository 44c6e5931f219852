/**
 * What to tell somebody whose backend is a lone word that no address of this machine goes by: the name of a
 * backend, most likely, which takes no lane. null: it is an address.
 */
export function loneWordNote(backend: string): string | null {
  const word = backend.trim();
  if (!/^[\w-]+$/.test(word)) return null;
  return `${word} is no address of this machine, so no lane is taken. If it is a backend’s name, write its URL, such as http://127.0.0.1:8080.`;
}
