import type { JsonObject } from '@wheelhouse/machinery';
import type { FlagSpec } from '../flags.ts';
import { objectAt } from '../objects.ts';
import type { Session } from '../session.ts';

/** The flag that stores the command line in the change-cause annotation. */
export const recordFlag: FlagSpec = {
  name: 'record',
  type: 'boolean',
  deprecated: '--record will be removed in the future',
  help: 'Record the command line in an annotation (deprecated)',
};

/** Flags whose values are not recorded. */
const secretFlags: ReadonlySet<string> = new Set(['token', 'password']);

/** The change-cause annotation of this command line; undefined without `--record`. */
export async function changeCause(session: Session): Promise<Record<string, string> | undefined> {
  if (!session.flags.boolean('record')) return undefined;
  const flags = session.flags
    .entries()
    .map(([name, value]) => `--${name}=${secretFlags.has(name) ? 'CLASSIFIED' : value}`);
  const name = (await session.dialect()).label('change-cause');
  return { [name]: ['svcctl', ...session.words, ...flags].join(' ') };
}

/** Returns an object with the change-cause annotation if `--record` is set. */
export async function recorded(session: Session, object: JsonObject): Promise<JsonObject> {
  const cause = await changeCause(session);
  if (cause === undefined) return object;
  const annotations = { ...objectAt(object, 'metadata', 'annotations'), ...cause };
  return { ...object, metadata: { ...objectAt(object, 'metadata'), annotations } };
}

/**
 * Adds the change-cause annotation to the object at a URL path if `--record` is set. Resolves with
 * the object after the write, or else with `object`.
 */
export async function recordAt(
  session: Session,
  options: {
    readonly path: string;
    readonly query: Readonly<Record<string, string | undefined>>;
    readonly object: JsonObject;
  },
): Promise<JsonObject> {
  const annotations = await changeCause(session);
  if (annotations === undefined) return options.object;
  const { object } = await session.client.send({
    method: 'PATCH',
    path: options.path,
    query: options.query,
    contentType: 'application/merge-patch+json',
    body: { metadata: { annotations } },
  });
  return object;
}
