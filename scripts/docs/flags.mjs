// The table of flags, from the list by which `wheelhouse serve` parses them.
import { serverFlags } from '@wheelhouse/server/testing';
import { cell, code, table } from './markdown.mjs';

/** The notation of values of each type. */
const types = {
  string: 'text',
  ip: 'address',
  int: 'integer',
  level: 'integer',
  float: 'number',
  bool: 'boolean',
  duration: 'duration',
  list: 'list',
  each: 'text, repeatable',
  map: 'list of name=value',
  pair: 'name=value, repeatable',
  pairs: 'list of name=value',
};

const stages = { beta: 'Beta.', alpha: 'Alpha.', own: 'Not in kube-apiserver.' };

/** One table for each group of flags, groups and flags in the order of `--help`. */
export function flagTables() {
  const groups = new Map();
  for (const [name, flag] of Object.entries(serverFlags)) {
    if (flag.hidden) continue;
    const rows = groups.get(flag.group) ?? [];
    rows.push(rowOf(name, flag));
    groups.set(flag.group, rows);
  }
  return [...groups]
    .map(([group, rows]) => `## ${group}\n\n${table(['Flag', 'Type', 'Default', 'Meaning'], rows)}`)
    .join('\n');
}

/** Turns flags that a text names into links to their rows. */
function withFlags(text) {
  return cell(text).replace(/--([a-z][a-z0-9-]*[a-z0-9])/g, (written, name) => {
    const flag = serverFlags[name];
    return flag === undefined || flag.hidden ? code(written) : `[${code(written)}](#${name})`;
  });
}

function rowOf(name, flag) {
  const type = types[flag.type];
  if (type === undefined) throw new Error(`there is no notation for the type ${flag.type}`);
  const short = flag.shorthand === undefined || flag.shorthand === name ? '' : `-${flag.shorthand}`;
  const written = name.length === 1 ? `-${name}` : `--${name}`;
  const stage = stages[flag.stage];
  const notes = [
    ...(flag.deprecated === undefined ? [] : [`**Deprecated:** ${withFlags(flag.deprecated)}.`]),
    ...(stage === undefined || flag.deprecated !== undefined ? [] : [`*${stage}*`]),
    ...(flag.only === undefined ? [] : [`Takes only its default: ${withFlags(flag.only)}.`]),
  ];
  return [
    `<a id="${name}"></a>${[written, short]
      .filter((text) => text !== '')
      .map(code)
      .join(', ')}`,
    type,
    code(flag.default),
    [withFlags(flag.help), ...notes].join(' '),
  ];
}
