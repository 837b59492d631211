import { type JsonObject, setMember } from '../base/json.ts';
import { encodeJson } from '../codec/json.ts';
import { objectAt } from './objects.ts';
import { serverDialect } from './server-dialect.ts';
import type { Session } from './session.ts';

/** The annotation by which a client-side apply knows what it wrote last, in the server's dialect. */
export async function lastAppliedName(session: Session): Promise<string> {
  const dialect = await serverDialect(session);
  const tool = dialect.name === 'kubernetes' ? 'kubectl' : 'svcctl';
  return dialect.label('last-applied-configuration', tool);
}

/** The object with itself in the annotation, which it does not count as its own. */
export function withLastApplied(object: JsonObject, name: string): JsonObject {
  const annotations: JsonObject = { ...objectAt(object, 'metadata', 'annotations') };
  delete annotations[name];
  const bare = { ...object, metadata: { ...objectAt(object, 'metadata'), annotations } };
  const marked: JsonObject = { ...annotations };
  setMember(marked, name, `${encodeJson(bare).toString()}\n`);
  return { ...object, metadata: { ...objectAt(object, 'metadata'), annotations: marked } };
}
