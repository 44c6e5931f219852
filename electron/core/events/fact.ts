/** The value of a fact as it is kept, in JSON; undefined: there is none. */
export function parseFact(json: string | undefined): unknown {
  return json === undefined ? undefined : JSON.parse(json);
}
