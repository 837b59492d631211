import { isUtf8 } from 'node:buffer';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { encodeJson } from '@wheelhouse/codec';
import { type JsonObject, setMember } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { createFlags, createObject, metadataIn, onlyName } from '../create-object.ts';
import { ContextError } from '../errors.ts';
import type { FlagSpec } from '../flags.ts';
import { CliError } from '../io.ts';
import { eachManifest, manifestFlags } from '../manifests.ts';
import { objectAt } from '../objects.ts';
import type { Session } from '../session.ts';
import { createAccountCommands } from './rbac/create-account.ts';
import { createRbacCommands } from './rbac/create-rbac.ts';

const dataFlags: readonly FlagSpec[] = [
  { name: 'from-literal', type: 'list', help: 'KEY=VALUE' },
  { name: 'from-file', type: 'list', help: '[KEY=]FILE, or a folder' },
  { name: 'from-env-file', type: 'list', help: 'A file of KEY=VALUE lines' },
];

/** Reads the data of a Secret off the flags, or that of the ConfigMap of a name. */
function dataOf(session: Session, ofMap?: string): Map<string, Buffer> {
  const data = new Map<string, Buffer>();
  const add = (key: string, value: Buffer) => {
    if (!/^[-._a-zA-Z0-9]{1,253}$/.test(key)) {
      throw new CliError(`${JSON.stringify(key)} is not a valid key name`);
    }
    if (data.has(key)) {
      const named = ofMap === undefined ? key : JSON.stringify(key);
      const where = ofMap === undefined ? '' : ` in Data for ConfigMap ${JSON.stringify(ofMap)}`;
      throw new CliError(
        `cannot add key ${named}, another key by that name already exists${where}`,
      );
    }
    data.set(key, value);
  };
  for (const literal of session.flags.list('from-literal')) {
    const equals = literal.indexOf('=');
    if (equals <= 0) throw new CliError(`invalid literal source ${literal}, expected key=value`);
    add(literal.slice(0, equals), Buffer.from(literal.slice(equals + 1)));
  }
  for (const source of session.flags.list('from-file')) {
    for (const { key, file } of filesOf(session, source)) add(key, readFileSync(file));
  }
  for (const file of session.flags.list('from-env-file')) {
    for (const line of readFileSync(session.path(file), 'utf8').split(/\r?\n/)) {
      const trimmed = line.trimStart();
      if (trimmed === '' || trimmed.startsWith('#')) continue;
      const equals = trimmed.indexOf('=');
      const key = equals < 0 ? trimmed : trimmed.slice(0, equals);
      const value = equals < 0 ? (session.io.env[key] ?? '') : trimmed.slice(equals + 1);
      add(key, Buffer.from(value));
    }
  }
  return data;
}

function filesOf(session: Session, source: string): { key: string; file: string }[] {
  const equals = source.indexOf('=');
  const file = session.path(equals < 0 ? source : source.slice(equals + 1));
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat === undefined) throw new CliError(`error reading ${file}: no such file or directory`);
  if (!stat.isDirectory()) {
    return [{ key: equals < 0 ? path.basename(file) : source.slice(0, equals), file }];
  }
  if (equals >= 0) throw new CliError('cannot give a key name for a directory path');
  return readdirSync(file, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => ({ key: entry.name, file: path.join(file, entry.name) }));
}

function configMapOf(session: Session, name: string): JsonObject {
  const data: JsonObject = {};
  const binaryData: JsonObject = {};
  for (const [key, value] of dataOf(session, name)) {
    if (isUtf8(value)) setMember(data, key, value.toString());
    else setMember(binaryData, key, value.toString('base64'));
  }
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: metadataIn(session, name),
    ...(Object.keys(data).length === 0 ? {} : { data }),
    ...(Object.keys(binaryData).length === 0 ? {} : { binaryData }),
  };
}

function secretOf(session: Session, name: string): JsonObject {
  const data: JsonObject = {};
  for (const [key, value] of dataOf(session)) setMember(data, key, value.toString('base64'));
  const type = session.flags.text('type');
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: metadataIn(session, name),
    ...(type === undefined ? {} : { type }),
    ...(Object.keys(data).length === 0 ? {} : { data }),
  };
}

const namespaceCommand: Command = {
  name: 'namespace',
  aliases: ['ns'],
  summary: 'Create a namespace with the specified name',
  usage: 'NAME',
  flags: createFlags,
  run: (session, args) =>
    createObject(session, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: onlyName(args) },
    }),
};

const configMapCommand: Command = {
  name: 'configmap',
  aliases: ['cm'],
  summary: 'Create a config map from literals, files or folders',
  usage: 'NAME [--from-literal=KEY=VALUE] [--from-file=[KEY=]SOURCE]',
  flags: [...createFlags, ...dataFlags],
  run: (session, args) =>
    createObject(session, configMapOf(session, onlyName(args)), 'failed to create configmap'),
};

const secretCommand: Command = {
  name: 'secret',
  summary: 'Create a secret',
  subcommands: [
    {
      name: 'generic',
      summary: 'Create a secret from literals, files or folders',
      usage: 'NAME [--type=TYPE] [--from-literal=KEY=VALUE] [--from-file=[KEY=]SOURCE]',
      flags: [
        ...createFlags,
        ...dataFlags,
        { name: 'type', type: 'text', help: 'The type of the secret' },
      ],
      run: (session, args) =>
        createObject(session, secretOf(session, onlyName(args)), 'failed to create secret'),
    },
  ],
};

export const createCommand: Command = {
  name: 'create',
  summary: 'Create a resource from a file or from stdin',
  usage: '-f FILENAME',
  flags: [
    ...manifestFlags,
    ...createFlags,
    { name: 'selector', short: 'l', type: 'text', help: 'Only objects with such labels' },
    { name: 'raw', type: 'text', help: 'Path to send the file to as it is' },
  ],
  subcommands: [
    namespaceCommand,
    configMapCommand,
    secretCommand,
    ...createAccountCommands,
    ...createRbacCommands,
  ],
  async run(session) {
    const raw = session.flags.text('raw');
    if (raw !== undefined) return createRaw(session, raw);
    return eachManifest(session, 'create', async ({ object, source }) => {
      try {
        await createObject(session, withoutVersion(object));
      } catch (error) {
        throw new ContextError(`error when creating ${JSON.stringify(source)}`, error);
      }
    });
  },
};

/** An object as it was read from a server is made anew: its version there means nothing here. */
function withoutVersion(object: JsonObject): JsonObject {
  const { resourceVersion, ...metadata } = objectAt(object, 'metadata');
  return resourceVersion === undefined ? object : { ...object, metadata };
}

async function createRaw(session: Session, where: string): Promise<number> {
  const [name, ...more] = session.flags.list('filename');
  if (name === undefined || more.length > 0) {
    throw new CliError('--raw can only use a single local file or stdin');
  }
  const body = name === '-' ? await session.io.stdin() : readFileSync(session.path(name), 'utf8');
  const { object } = await session.client.send({ method: 'POST', path: where, body });
  session.io.out(`${encodeJson(object).toString()}\n`);
  return 0;
}
