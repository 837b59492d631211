// The formats of configuration files, from the types by which the server reads them.

import { configurationFormats } from '@wheelhouse/server/testing';
import { encryptionFormat } from '@wheelhouse/store';
import { fields } from './configuration-fields.mjs';
import { cell, code, table } from './markdown.mjs';

/** The name of a type, in terms of the values that a user writes. */
function typeName({ type, format, items }) {
  if (type === 'array') return `list of ${typeName(items)}`;
  if (format === 'duration') return 'duration';
  return { string: 'text', boolean: 'boolean', integer: 'integer', object: 'object' }[type] ?? type;
}

/** The members of a type by their paths. Types of the API are not expanded. */
function membersOf(schema, prefix = '') {
  return [...(schema.properties ?? [])].flatMap(([name, { schema: member }]) => {
    const path = `${prefix}${name}`;
    const inner = member.type === 'array' ? member.items : member;
    const isOwn = inner.typeName?.startsWith('apiserver.') === true;
    const below = member.type === 'array' ? `${path}[].` : `${path}.`;
    return [[path, typeName(member)], ...(isOwn ? membersOf(inner, below) : [])];
  });
}

/** A section for each kind of file. */
export function configurationTables() {
  const formats = [...configurationFormats, encryptionFormat];
  return formats.map((format) => section(format)).join('\n');
}

function section({ kind, of, group, versions }) {
  const title = of === undefined ? kind : `${kind} of ${of}`;
  const meanings = fields[title] ?? {};
  const members = membersOf(Object.values(versions)[0]);
  const paths = new Set(members.map(([path]) => path));
  const wrong = [
    ...[...paths].filter((path) => meanings[path] === undefined),
    ...Object.keys(meanings).filter((path) => !paths.has(path)),
  ];
  if (wrong.length > 0) throw new Error(`configuration-fields.mjs, ${title}: ${wrong.join(', ')}`);
  const names = Object.keys(versions).map((version) => code(`${group}.svc.io/${version}`));
  const rows = members.map(([path, type]) => [code(path), type, cell(meanings[path])]);
  return `## ${title}\n\n${names.join(', ')}\n\n${table(['Field', 'Type', 'Meaning'], rows)}`;
}
