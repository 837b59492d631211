import type { ApiResource } from '@wheelhouse/client';
import { type JsonObject, setMember } from '@wheelhouse/machinery';
import type { FlagSpec } from '../flags.ts';
import { namespaceOf, objectAt } from '../objects.ts';
import { compactJson } from '../output/pretty-json.ts';
import { serverDialect } from '../server-dialect.ts';
import type { Session } from '../session.ts';

/** Has a write note what was written. */
export const saveConfigFlag: FlagSpec = {
  name: 'save-config',
  type: 'boolean',
  help: 'Save the object in its annotation, for a later apply --client-side',
};

/** The annotation by which a client-side apply knows what it wrote last, in the server's dialect. */
export async function lastAppliedName(session: Session): Promise<string> {
  const dialect = await serverDialect(session);
  return dialect.label('last-applied-configuration', dialect.tool);
}

/** An object of a file with the namespace it goes to, as it is noted and sent. */
export function placed(
  session: Session,
  { resource, object }: { resource: ApiResource; object: JsonObject },
): JsonObject {
  if (!resource.namespaced || namespaceOf(object) !== '') return object;
  const metadata = { ...objectAt(object, 'metadata'), namespace: session.namespace };
  return { ...object, metadata };
}

/** An object as it is noted, byte for byte as kubectl does. */
export function notedText(object: JsonObject): string {
  return `${compactJson(object)}\n`;
}

/** The object as it is noted: with annotations, if none, but not with the one it is noted in. */
export function withoutLastApplied(object: JsonObject, name: string): JsonObject {
  const annotations: JsonObject = { ...objectAt(object, 'metadata', 'annotations') };
  delete annotations[name];
  return { ...object, metadata: { ...objectAt(object, 'metadata'), annotations } };
}

/** The object with itself in the annotation, which it does not count as its own. */
export function withLastApplied(object: JsonObject, name: string): JsonObject {
  const bare = withoutLastApplied(object, name);
  const annotations = objectAt(bare, 'metadata', 'annotations');
  const marked: JsonObject = { ...annotations };
  setMember(marked, name, notedText(bare));
  return { ...object, metadata: { ...objectAt(object, 'metadata'), annotations: marked } };
}
