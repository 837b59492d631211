import { parseYaml, toYaml } from '@wheelhouse/client';
import { isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { editInEditor, editSubject } from '../apply/edit-session.ts';
import { lastAppliedName, notedText, placed } from '../apply/last-applied.ts';
import { dryRunOf, dryRunSuffix, objectPath, writeFlags, writeQuery } from '../apply/writes.ts';
import type { Command } from '../command.ts';
import type { FlagSpec } from '../flags.ts';
import { CliError } from '../io.ts';
import { eachManifest, manifestFlags } from '../manifests.ts';
import { nameOf, namespaceOf, textAt } from '../objects.ts';
import { outputFlags, reportObject } from '../output/output.ts';
import { printJson } from '../output/pretty-json.ts';
import {
  fetchTarget,
  resourceOfObject,
  selectionFlags,
  selectTargets,
  targetPath,
} from '../selection.ts';
import type { Session } from '../session.ts';

const outputFlag: FlagSpec = { name: 'output', short: 'o', type: 'text', help: 'json or yaml' };

const viewCommand: Command = {
  name: 'view-last-applied',
  completes: 'objects',
  summary: 'View the last applied configuration, from the annotation',
  usage: '(TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME)',
  flags: [
    ...selectionFlags,
    outputFlag,
    { name: 'all', type: 'boolean', help: 'All objects of the type' },
  ],
  async run(session, args) {
    const output = session.flags.text('output') ?? 'yaml';
    if (output !== 'json' && output !== 'yaml') {
      throw new CliError(
        `Unexpected -o output mode: ${output}, the flag 'output' must be one of yaml|json\n` +
          "See 'svcctl apply view-last-applied -h' for help and examples",
      );
    }
    const annotation = await lastAppliedName(session);
    for (const target of await selectTargets(session, args)) {
      for (const object of await fetchTarget(session, target)) {
        const text = textAt(object, 'metadata', 'annotations', annotation);
        if (text === '' && session.flags.has('filename')) {
          throw new CliError(
            `no last-applied-configuration annotation found on resource: ${nameOf(object)}`,
          );
        }
        if (text === '') continue;
        const noted = await parseYaml(text);
        session.io.out(output === 'json' ? `${printJson(noted, '  ')}\n` : toYaml(noted));
      }
    }
    return 0;
  },
};

const setCommand: Command = {
  name: 'set-last-applied',
  summary: 'Save a file as the last applied configuration, changing nothing else',
  usage: '-f FILENAME',
  flags: [
    ...manifestFlags,
    ...writeFlags,
    ...outputFlags,
    {
      name: 'create-annotation',
      type: 'boolean',
      help: 'Create the annotation if the object has none',
    },
  ],
  run: (session) =>
    eachManifest(session, 'set-last-applied', ({ object }) => setLastApplied(session, object)),
};

async function setLastApplied(session: Session, object: JsonObject): Promise<void> {
  const annotation = await lastAppliedName(session);
  const resource = await resourceOfObject(session, object);
  const path = objectPath(session, { resource, object });
  const live = await session.client.get(path);
  const before = textAt(live, 'metadata', 'annotations', annotation);
  if (before === '' && !session.flags.boolean('create-annotation')) {
    throw new CliError(
      `no last-applied-configuration annotation found on resource: ${nameOf(object)}, ` +
        'to create the annotation, run the command with --create-annotation',
    );
  }
  const value = notedText(placed(session, { resource, object }));
  // A note that says the same in other words is written anew.
  if (before.trimEnd() === value.trimEnd()) {
    session.io.out(`set-last-applied ${nameOf(object)}: no changes required.\n`);
    return;
  }
  if (dryRunOf(session) === 'client') {
    reportObject(session, live, `configured${dryRunSuffix(session)}`);
    return;
  }
  const { object: written } = await session.client.send({
    method: 'PATCH',
    path,
    // Who writes is what the server makes of the client's name, as with kubectl.
    query: { ...writeQuery(session), fieldManager: session.flags.text('field-manager') },
    contentType: 'application/merge-patch+json',
    body: { metadata: { annotations: { [annotation]: value } } },
  });
  reportObject(session, written, `configured${dryRunSuffix(session)}`);
}

const heading = `# Please edit the 'last-applied-configuration' annotations below.
# Lines beginning with a '#' will be ignored, and an empty file will abort the edit.
#
`;

const editCommand: Command = {
  name: 'edit-last-applied',
  completes: 'objects',
  summary: 'Edit the last applied configuration only',
  usage: '(TYPE NAME | TYPE/NAME | -f FILENAME)',
  flags: [...selectionFlags, ...writeFlags, ...outputFlags],
  async run(session, args) {
    const annotation = await lastAppliedName(session);
    let exitCode = 0;
    let found = false;
    for (const target of await selectTargets(session, args)) {
      for (const object of await fetchTarget(session, target)) {
        const text = textAt(object, 'metadata', 'annotations', annotation);
        if (text === '') continue;
        found = true;
        const path = targetPath({
          ...target,
          namespace: namespaceOf(object),
          name: nameOf(object),
        });
        const noted = await parseYaml(text);
        const subject = editSubject(target.resource, nameOf(object));
        const code = await editNote(session, { path, annotation, noted, subject });
        exitCode = Math.max(exitCode, code);
      }
    }
    if (found) return exitCode;
    throw new CliError(
      'no last-applied-configuration annotation found on resources, to create the annotation, ' +
        'use command `svcctl apply set-last-applied --create-annotation`',
    );
  },
};

function editNote(
  session: Session,
  of: {
    readonly path: string;
    readonly annotation: string;
    readonly noted: JsonValue;
    readonly subject: string;
  },
): Promise<number> {
  const { path, annotation, noted, subject } = of;
  return editInEditor(session, {
    heading,
    subject,
    shown: noted,
    apply: async (edited) => {
      if (!isObject(edited)) throw new CliError('the edited file is not an object');
      await session.client.send({
        method: 'PATCH',
        path,
        query: writeQuery(session, 'svcctl-client-side-apply'),
        contentType: 'application/merge-patch+json',
        body: { metadata: { annotations: { [annotation]: notedText(edited) } } },
      });
      reportObject(session, edited, `edited${dryRunSuffix(session)}`);
      return { type: 'done' };
    },
  });
}

/** The sub-commands of `apply` about the annotation that a client-side apply goes by. */
export const lastAppliedCommands: readonly Command[] = [viewCommand, setCommand, editCommand];
