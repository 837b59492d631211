import type { JsonObject } from '../base/json.ts';
import { CliError } from './io.ts';
import { reportObject } from './output.ts';
import { resourceOfObject } from './selection.ts';
import type { Session } from './session.ts';
import { dryRunOf, dryRunSuffix, objectPath, writeQuery } from './writes.ts';

/** Creates one object and reports it; `--dry-run=client` only reports. */
export async function createObject(session: Session, object: JsonObject): Promise<number> {
  const suffix = dryRunSuffix(session);
  if (dryRunOf(session) === 'client') {
    reportObject(session, object, `created${suffix}`);
    return 0;
  }
  const resource = await resourceOfObject(session, object);
  const { object: created } = await session.client.send({
    method: 'POST',
    path: objectPath(session, { resource, object, name: '' }),
    query: writeQuery(session, 'svcctl-create'),
    body: object,
  });
  reportObject(session, created, `created${suffix}`);
  return 0;
}

/** The one argument of a generator: the new object's name. */
export function onlyName(args: readonly string[]): string {
  const [name, ...more] = args;
  if (name === undefined || more.length > 0) {
    throw new CliError(`exactly one NAME is required, got ${args.length}`);
  }
  return name;
}

/** Metadata of a generated object of a namespaced kind. */
export function metadataIn(session: Session, name: string): JsonObject {
  const { namespace, namespaceGiven } = session.context;
  return namespaceGiven ? { name, namespace } : { name };
}
