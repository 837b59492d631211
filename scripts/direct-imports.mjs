// A plugin of esbuild: replaces imports of a package's index by imports of the files that the index
// names. Otherwise using one function of a package would evaluate all its modules, which would slow
// down every start.
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const imported = /^(import|export) \{([^}]*)\} from '@wheelhouse\/([\w-]+)(?:\/(\w+))?';/gm;
const exported = /^export \{([^}]*)\} from '\.\/([^']+)';/gm;

/** `[exported, local]` of each value among specifiers, such as `a`, `a as b`, or `type C`. */
function namesIn(specifiers) {
  return specifiers
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '' && !part.startsWith('type '))
    .map((part) => {
      const [name, local = name] = part.split(' as ');
      return [name, local];
    });
}

/** @param root the folder of the repository */
export function directImports(root) {
  const entries = new Map();

  /** The file that declares each name of a package's entry, and its name in that file. */
  function entryOf(name, entry = 'index') {
    const source = join(root, 'packages', name, 'src');
    const path = join(source, `${entry}.ts`);
    if (!entries.has(path)) {
      const found = new Map();
      for (const [, specifiers, file] of readFileSync(path, 'utf8').matchAll(exported)) {
        for (const [inside, outside] of namesIn(specifiers)) {
          found.set(outside, { inside, file: join(source, file) });
        }
      }
      entries.set(path, found);
    }
    return entries.get(path);
  }

  function direct(statement, [keyword, specifiers, name, entry]) {
    const known = entryOf(name, entry);
    const statements = namesIn(specifiers).map(([outside, local]) => {
      const at = known.get(outside);
      if (at === undefined) throw new Error(`@wheelhouse/${name} exports no ${outside}`);
      return `${keyword} { ${at.inside} as ${local} } from ${JSON.stringify(at.file)};`;
    });
    // Keeps the number of lines, so that source maps stay correct.
    return statements.join(' ') + '\n'.repeat(statement.split('\n').length - 1);
  }

  return {
    name: 'direct-imports',
    setup({ onLoad }) {
      onLoad({ filter: /[\\/]packages[\\/].*\.ts$/ }, async ({ path }) => {
        const text = await readFile(path, 'utf8');
        const contents = text.replace(imported, (statement, ...groups) =>
          direct(statement, groups.slice(0, 4)),
        );
        return { contents, loader: 'ts' };
      });
    },
  };
}
