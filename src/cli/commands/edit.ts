import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isObject, type JsonObject, jsonEqual } from '../../base/json.ts';
import { parseYaml, toYaml } from '../../client/yaml.ts';
import type { Command } from '../command.ts';
import { CliError } from '../io.ts';
import { mergePatchBetween } from '../merge-patch.ts';
import { outputFlags, reportObject } from '../output.ts';
import { fetchTarget, selectionFlags, selectTargets, targetPath } from '../selection.ts';
import type { Session } from '../session.ts';
import { dryRunSuffix, writeFlags, writeQuery } from '../writes.ts';

export const editCommand: Command = {
  name: 'edit',
  completes: 'objects',
  summary: 'Edit a resource on the server',
  usage: '(TYPE NAME | TYPE/NAME | -f FILENAME)',
  flags: [
    ...selectionFlags,
    ...writeFlags,
    ...outputFlags,
    { name: 'subresource', type: 'text', help: 'Sub-resource to edit: status, scale' },
  ],
  async run(session, args) {
    for (const target of await selectTargets(session, args)) {
      for (const object of await fetchTarget(session, target)) {
        const edited = await editObject(session, object);
        if (edited === undefined) {
          session.io.err('Edit cancelled, no changes made.\n');
          continue;
        }
        const { object: written } = await session.client.send({
          method: 'PATCH',
          path: targetPath(target, session.flags.text('subresource') ?? ''),
          query: writeQuery(session, 'svcctl-edit'),
          contentType: 'application/merge-patch+json',
          body: mergePatchBetween(object, edited),
        });
        reportObject(session, written, `edited${dryRunSuffix(session)}`);
      }
    }
    return 0;
  },
};

const heading = `# Please edit the object below. Lines beginning with a '#' will be ignored,
# and an empty file will abort the edit.
#
`;

/** Lets the user change an object in their editor; undefined when they changed nothing. */
async function editObject(session: Session, object: JsonObject): Promise<JsonObject | undefined> {
  const { env } = session.io;
  const metadata = isObject(object.metadata) ? { ...object.metadata } : {};
  if (!session.flags.boolean('show-managed-fields')) delete metadata['managedFields'];
  const shown: JsonObject = { ...object, metadata };
  const folder = mkdtempSync(path.join(tmpdir(), 'svcctl-edit-'));
  try {
    const file = path.join(folder, 'object.yaml');
    writeFileSync(file, heading + toYaml(shown), { mode: 0o600 });
    const editor = env['SVC_EDITOR'] || env['KUBE_EDITOR'] || env['EDITOR'] || 'vi';
    const code = await session.io.run('/bin/sh', ['-c', `${editor} "$1"`, 'edit', file]);
    if (code !== 0) throw new CliError(`the editor ended with exit code ${code}`);
    const edited = await parseYaml(readFileSync(file, 'utf8'));
    if (edited === null || jsonEqual(edited, shown)) return undefined;
    if (!isObject(edited)) throw new CliError('the edited file is not an object');
    if (metadata['managedFields'] !== undefined || !isObject(edited.metadata)) return edited;
    const before = isObject(object.metadata) ? object.metadata['managedFields'] : undefined;
    return { ...edited, metadata: { ...edited.metadata, managedFields: before } };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
