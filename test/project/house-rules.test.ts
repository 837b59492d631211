import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { exceptions } from './house-rules-exceptions.ts';
import { originChecks } from './origin-checks.ts';
import { filesUnder, root } from './repository.ts';
import { undocumentedExports } from './undocumented-exports.ts';

/**
 * Style rules that people cannot be expected to check by hand. Messages say what to do instead.
 * Remaining violations are listed in house-rules-exceptions.ts; that list may only shrink.
 */

const linesMax = 700;
const functionLinesMax = 70;
const columnsMax = 100;
/** The formatter does not break comments, so slightly longer ones are allowed. */
const commentColumnsMax = 120;

interface Source {
  /** `packages/machinery/src/base/clock.ts`, from the root of the repository. */
  readonly path: string;
  readonly text: string;
  readonly generated: boolean;
  readonly isTest: boolean;
}

interface ParsedSource extends Source {
  readonly tree: ts.SourceFile;
  /** All nodes of the tree, each before its children. */
  readonly nodes: readonly ts.Node[];
}

function readSource(path: string): Source {
  return {
    path,
    text: readFileSync(join(root, path), 'utf8'),
    generated: path.includes('/gen/'),
    isTest:
      /\.(test|fuzz|bench)\.ts$/.test(path) ||
      path.startsWith('test/') ||
      path.endsWith('suite.ts'),
  };
}

/** Parses a file without its documentation comments and without links from nodes to their parents. */
function parsed(source: Source): ParsedSource {
  const { path, text } = source;
  const options = {
    languageVersion: ts.ScriptTarget.Latest,
    jsDocParsingMode: ts.JSDocParsingMode.ParseNone,
  };
  const tree = ts.createSourceFile(path, text, options);
  const nodes: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    nodes.push(node);
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return { ...source, tree, nodes };
}

const sources = ['packages', 'test'].flatMap((folder) => filesUnder(folder)).map(readSource);
const scripts = filesUnder('scripts', /\.mjs$/).map(readSource);
const code = sources.filter(({ isTest }) => !isTest);
const written = sources.filter(({ generated }) => !generated);

/**
 * Compares violations with the exceptions: there must be no new ones, and no exception that was
 * fixed.
 */
function check(rule: keyof typeof exceptions, violations: readonly string[]): void {
  const found = new Set(violations);
  const listed: readonly string[] = exceptions[rule];
  const fresh = [...found].filter((violation) => !listed.includes(violation));
  const mended = listed.filter((violation) => !found.has(violation));
  expect(fresh, `${rule}: mend these`).toEqual([]);
  expect(mended, `${rule}: mended, take these off the list of exceptions`).toEqual([]);
}

describe('size', () => {
  test(`files have at most ${linesMax} lines`, () => {
    const long = written.filter(({ text }) => text.split('\n').length > linesMax + 1);
    check(
      'longFiles',
      long.map(({ path }) => path),
    );
  });

  test(`functions have at most ${functionLinesMax} lines`, () => {
    check('longFunctions', foundBy('longFunctions'));
  });

  test(`lines have at most ${columnsMax} columns, one long text aside`, () => {
    const long = written.filter(({ text }) =>
      text.split('\n').some((line) => line.length > columnsMax && !isOneText(line)),
    );
    check(
      'longLines',
      long.map(({ path }) => path),
    );
  });
});

/**
 * Whether a line cannot be broken because it is one string or template, possibly with a name before
 * it.
 */
function isOneText(line: string): boolean {
  if (/^\s*(\/?\*|\/\/)/.test(line)) return line.length <= commentColumnsMax;
  return /['"`]/.test(line) && !/^.{100}.*\s(=>|&&|\|\||\?)\s/.test(line);
}

const uncommented = (text: string): string => text.replace(/^\s*(\/?\*|\/\/).*$/gm, '');

function longFunctions({ tree, nodes }: ParsedSource): string[] {
  const lineOf = (position: number): number => tree.getLineAndCharacterOfPosition(position).line;
  return nodes.flatMap((node) => {
    if (!ts.isFunctionLike(node) || !('body' in node) || node.body === undefined) return [];
    const lines = lineOf(node.end) - lineOf(node.getStart(tree)) + 1;
    return lines > functionLinesMax ? [node.name?.getText(tree) ?? 'anonymous'] : [];
  });
}

describe('code', () => {
  test('there is no any: use unknown at edges, a type elsewhere', () => {
    check('any', foundBy('any'));
  });

  test('there is no default export: name it', () => {
    check('defaultExports', foundBy('defaultExports'));
  });

  test('time comes from base/clock.ts only: take a Clock', () => {
    check('hostTime', foundBy('hostTime'));
  });

  test('callbacks of the event loop are contained: register them through base/faults.ts', () => {
    check('rawCallbacks', foundBy('rawCallbacks'));
  });

  test('codec/src/x509/pem.ts alone reads PEM: use pemBlocks or onlyPemBlock', () => {
    const found = code.filter(
      ({ path, text }) => /-----(BEGIN|END)/.test(text) && !pemTexts.has(path),
    );
    check(
      'pemReaders',
      found.map(({ path }) => path),
    );
  });

  test('floating promises are contained: use background or return them', () => {
    check('voidedCalls', foundBy('voidedCalls'));
  });

  test('randomness and task order come from base/host.ts only: use its functions', () => {
    expect(foundBy('hostUses')).toEqual([]);
  });

  test('decoders word errors in machinery/src/meta/wording.ts: use problemText', () => {
    const words = new RegExp(
      [
        'cannot unmarshal \\$|strconv\\.\\w+: parsing|illegal base64 data|json parse error: ',
        'strict decoding error: |cannot be handled as a \\$',
        'time: (missing unit|unknown unit|invalid duration)',
      ].join('|'),
    );
    const found = written.filter(
      ({ path, text, isTest }) =>
        !isTest && !path.endsWith('machinery/src/meta/wording.ts') && words.test(uncommented(text)),
    );
    expect(found.map(({ path }) => path)).toEqual([]);
  });

  test('vendor names come from dialect.ts: use a Dialect', () => {
    check('vendorNames', foundBy('vendorNames'));
  });

  test('the console never turns text into markup or script: use textContent', () => {
    expect(foundBy('markupUses')).toEqual([]);
  });

  test('no list is spread onto the stack: use appendAll', () => {
    check('spreads', foundBy('spreads'));
  });

  test('no list is searched once per item: use repeats, a Set, or a Map', () => {
    check('ownSearches', foundBy('ownSearches'));
  });

  test('no code asks whether a kind is custom: read a member of its KindBehavior', () => {
    expect(foundBy('originChecks')).toEqual([]);
  });

  test('exports have a docstring: state what the signature does not', () => {
    const undocumented = inFile(({ tree }) => undocumentedExports(tree));
    const ofScripts = scripts.flatMap((script) => undocumented(parsed(script)));
    expect([...foundBy('undocumented'), ...ofScripts]).toEqual([]);
  });

  test('comments leave no work for later', () => {
    const pattern = new RegExp(
      `\\b(${['TO', 'DO'].join('')}|${['FIX', 'ME'].join('')}|${'X'.repeat(3)})\\b`,
    );
    const found = written.filter(({ text }) => pattern.test(text));
    check(
      'todos',
      found.map(({ path }) => path),
    );
  });

  test('sizes that have reached their goals stay there: see docs/decisions/size.md', () => {
    const sizes = house.measuredSizes({ sourceOf: (path) => measured.get(path) });
    const reached = /^(files of the largest folder|casts|double casts|declarations named)/;
    const kept = sizes.filter(([what]) => reached.test(what));
    expect(kept).toHaveLength(4);
    expect(kept.filter(([, value, goal]) => value > goal)).toEqual([]);
  });

  test('no path of a single machine appears', () => {
    const pattern = new RegExp(['/wo', 'rk/|/ro', 'ot/|/ho', 'me/'].join(''));
    const found = sources.filter(({ text, isTest }) => !isTest && pattern.test(text));
    check(
      'machinePaths',
      found.map(({ path }) => path),
    );
  });
});

const methodOf = (call: ts.CallExpression): string =>
  ts.isPropertyAccessExpression(call.expression) ? call.expression.name.text : '';

/** Calls that take each item as an argument; about 120,000 items overflow the stack. */
const takesItems = new Set(['push', 'unshift', 'concat', 'max', 'min', 'fromCharCode']);

function spreads({ tree, nodes }: ParsedSource): string[] {
  const found: string[] = [];
  for (const node of nodes) {
    const isSpread =
      ts.isCallExpression(node) &&
      takesItems.has(methodOf(node)) &&
      node.arguments.some(ts.isSpreadElement);
    if (isSpread) found.push(node.getText(tree));
  }
  return found;
}

const visits = new Set(['map', 'flatMap', 'forEach', 'filter', 'some', 'every', 'find']);
const searches = new Set([
  ...['includes', 'indexOf', 'lastIndexOf', 'find', 'findIndex', 'findLast', 'findLastIndex'],
  ...['some', 'every', 'filter'],
]);

/** Finds searches of a list inside a callback that runs for each item of the same list. */
function ownSearches({ tree }: ParsedSource): string[] {
  const found: string[] = [];
  const receiverOf = ({ expression }: ts.CallExpression) =>
    ts.isPropertyAccessExpression(expression) ? expression.expression.getText(tree) : '';
  const visit = (node: ts.Node, visited: readonly string[]): void => {
    if (!ts.isCallExpression(node)) {
      const list = ts.isForOfStatement(node) ? [node.expression.getText(tree)] : [];
      ts.forEachChild(node, (child) => visit(child, [...visited, ...list]));
      return;
    }
    const receiver = receiverOf(node);
    if (searches.has(methodOf(node)) && visited.includes(receiver)) found.push(node.getText(tree));
    const list = visits.has(methodOf(node)) ? [receiver] : [];
    visit(node.expression, visited);
    for (const argument of node.arguments) visit(argument, [...visited, ...list]);
  };
  visit(tree, []);
  return found;
}

/** `store` of `packages/store/src/contract.ts`; `test` of a test. */
function packageOf(path: string): string {
  const [top = '', name = ''] = path.split('/');
  return top === 'packages' ? name : top;
}

function defaultExports({ tree, path }: ParsedSource): string[] {
  const isFound = tree.statements.some(
    (statement) =>
      ts.isExportAssignment(statement) ||
      (ts.canHaveModifiers(statement) &&
        (ts.getModifiers(statement) ?? []).some(
          ({ kind }) => kind === ts.SyntaxKind.DefaultKeyword,
        )),
  );
  return isFound ? [path] : [];
}

/** The sources of time; the second is for browsers, whose timers differ. */
const clocks = new Set([
  'packages/machinery/src/base/clock.ts',
  'packages/console/src/browser/main.ts',
]);

const timerNames = new Set(['setTimeout', 'setInterval']);

function hostTimeUses({ tree, nodes }: ParsedSource): string[] {
  const found = new Set<string>();
  for (const node of nodes) {
    if (ts.isNewExpression(node) && node.expression.getText(tree) === 'Date') {
      if ((node.arguments?.length ?? 0) === 0) found.add('new Date()');
    } else if (ts.isCallExpression(node)) {
      const callee = node.expression.getText(tree);
      if (callee === 'Date.now' || timerNames.has(callee)) found.add(callee);
    }
  }
  return [...found];
}

/**
 * The reader, the writers of PEM, an example, and code that only detects whether a text has no
 * block or several.
 */
const pemTexts = new Set([
  'packages/server/src/compose/apis/served-kinds.ts',
  'packages/client/src/credentials/exec-credential.ts',
  'packages/codec/src/x509/pem.ts',
  'packages/kinds/src/certificates/certificate-request.ts',
  'packages/kinds/src/certificates/certificate-signing-request.ts',
  'packages/kinds/src/certificates/cluster-trust-bundle.ts',
  'packages/server/src/serving/generated-certificates.ts',
]);

/** The wrapper itself, programs and suites that serve no clients, and browser code. */
const uncontained = new RegExp(
  [
    /machinery\/src\/base\/(faults|host)\.ts/,
    /server\/src\/(main|observe\/faults)\.ts/,
    /\btesting\.ts/,
    /^packages\/(svcctl|console)\//,
  ]
    .map(({ source }) => source)
    .join('|'),
);
/** Methods that register callbacks for events, and methods that call back on completion. */
const registrations = /^(on|once|addListener|prepend(Once)?Listener|addEventListener)$/;
const completions = /^(write|end|close|listen|connect|request|get|setTimeout|finished|pipeline)$/;
const deferrals =
  /^(setTimeout|setInterval|setImmediate|deferTask|queueMicrotask|process\.nextTick)$/;
const watchers = /^(FinalizationRegistry|PerformanceObserver)$/;
/** Node's options that are callbacks. */
const callbackOptions = /^(SNICallback|ALPNCallback|pskCallback|checkServerIdentity)$/;
const containers = /^(contained|containedEach|returningErrors)$/;

/** Finds callbacks for the event loop whose exceptions nothing would catch. */
function rawCallbacks(source: ParsedSource): string[] {
  const { tree, nodes } = source;
  const declared = containedNames(source);
  const isRaw = (value: ts.Expression | undefined): boolean =>
    value !== undefined && !isContained(value, { tree, declared });
  const found: string[] = [];
  for (const node of nodes) {
    if (ts.isCallExpression(node)) {
      const callee = node.expression.getText(tree);
      const method = ts.isPropertyAccessExpression(node.expression)
        ? node.expression.name.text
        : '';
      const callbacks = registrations.test(method)
        ? node.arguments.slice(1)
        : deferrals.test(callee)
          ? node.arguments.slice(0, 1)
          : completions.test(method)
            ? node.arguments.filter(isFunction)
            : [];
      if (callbacks.some(isRaw)) found.push(callee);
    } else if (ts.isNewExpression(node) && watchers.test(node.expression.getText(tree))) {
      if (isRaw(node.arguments?.[0])) found.push(node.expression.getText(tree));
    } else if (ts.isPropertyAssignment(node) && callbackOptions.test(node.name.getText(tree))) {
      if (isRaw(node.initializer)) found.push(node.name.getText(tree));
    }
  }
  return found;
}

/** Names of wrapped callbacks, and of functions that do nothing. */
function containedNames({ tree, nodes }: ParsedSource): ReadonlySet<string> {
  const names = new Set<string>();
  for (const node of nodes) {
    if (ts.isVariableDeclaration(node) || ts.isPropertyDeclaration(node)) {
      if (isContainer(node.initializer, tree)) names.add(node.name.getText(tree));
    } else if (ts.isBinaryExpression(node) && isContainer(node.right, tree)) {
      if (ts.isPropertyAccessExpression(node.left)) names.add(node.left.name.text);
    } else if (ts.isFunctionDeclaration(node) && node.body?.statements.length === 0) {
      names.add(node.name?.text ?? '');
    }
  }
  return names;
}

function isContainer(value: ts.Expression | undefined, tree: ts.SourceFile): boolean {
  return (
    value !== undefined &&
    ts.isCallExpression(value) &&
    containers.test(value.expression.getText(tree))
  );
}

function isFunction(value: ts.Expression): boolean {
  return ts.isArrowFunction(value) || ts.isFunctionExpression(value);
}

/** Also counts as contained: functions that settle a promise, and functions that do nothing. */
function isContained(
  value: ts.Expression,
  of: { readonly tree: ts.SourceFile; readonly declared: ReadonlySet<string> },
): boolean {
  if (isContainer(value, of.tree)) return true;
  if (ts.isIdentifier(value)) {
    return /^(resolve|reject)$/.test(value.text) || of.declared.has(value.text);
  }
  if (ts.isPropertyAccessExpression(value)) return of.declared.has(value.name.text);
  if (!ts.isArrowFunction(value)) return false;
  return /^(\{\s*\}|(resolve|reject)\(\w*\))$/.test(value.body.getText(of.tree));
}

/** Finds `void`, which hides a promise from the linter's rule on floating promises. */
function voidedCalls({ tree, nodes }: ParsedSource): string[] {
  const found: string[] = [];
  for (const node of nodes) {
    if (ts.isVoidExpression(node) && !isSettled(node.expression)) {
      found.push(node.getText(tree).split('\n', 1)[0] ?? '');
    }
  }
  return found;
}

/** Methods of collections and streams that return no promises. */
const plainMutations = /^(add|set|delete|push|end|write|destroy)$/;

function isSettled(value: ts.Expression): boolean {
  if (ts.isParenthesizedExpression(value)) return isSettled(value.expression);
  if (ts.isAwaitExpression(value)) return true;
  return (
    ts.isCallExpression(value) &&
    ts.isPropertyAccessExpression(value.expression) &&
    plainMutations.test(value.expression.name.text)
  );
}

/** Packages of other programs than the server. No simulation runs them. */
const otherPrograms = new Set(['client', 'svcctl', 'console']);

const hostNames = new Set(['Math.random', 'randomUUID', 'randomInt', 'setImmediate']);

/** Finds uses of those names, whether called, passed on, or imported. */
function hostUses({ tree, nodes }: ParsedSource): string[] {
  const found = new Set<string>();
  for (const node of nodes) {
    if (ts.isIdentifier(node) || ts.isPropertyAccessExpression(node)) {
      const name = node.getText(tree);
      if (hostNames.has(name)) found.add(name);
    }
  }
  return [...found];
}

const makers = /^(inner|outer)HTML|insertAdjacentHTML|srcdoc|DOMParser|setHTML|parseHTML|eval$/;
const markupNames = new RegExp(`${makers.source}|^dangerouslySetInnerHTML$`);

/** Finds names that turn text into markup or script, and stores that outlive a tab. */
function markupUses({ tree, nodes }: ParsedSource): string[] {
  const found: string[] = [];
  for (const node of nodes) {
    const named = ts.isIdentifier(node) || ts.isStringLiteralLike(node) ? node.text : '';
    if (markupNames.test(named) || /^(localStorage|cookie|javascript:.*)$/.test(named)) {
      found.push(named);
    } else if (
      ts.isPropertyAccessExpression(node) &&
      /^document\.write(ln)?$/.test(node.getText(tree))
    ) {
      found.push(node.getText(tree));
    } else if (ts.isNewExpression(node) && node.expression.getText(tree) === 'Function') {
      found.push('new Function');
    }
  }
  return found;
}

/** Every string and template text, without comments. */
function textsOf({ nodes }: ParsedSource): string[] {
  const texts: string[] = [];
  for (const node of nodes) {
    if (
      ts.isStringLiteralLike(node) ||
      ts.isTemplateHead(node) ||
      ts.isTemplateMiddleOrTemplateTail(node)
    ) {
      texts.push(node.text);
    }
  }
  return texts;
}

/** The labels and groups of one vendor. */
const vendorName = /(?<![\w-])[\w.-]*(k8s\.io|kubernetes\.io|svc\.io)/;

/** Files that decide whether a kind is custom. */
const decides = /^packages\/(kinds\/src\/custom|server\/src\/catalogue)\//;

/** Adds the path of a file to what a rule finds in it. */
const inFile = (find: (source: ParsedSource) => readonly string[]) => (source: ParsedSource) =>
  find(source).map((found) => `${source.path} ${found}`);

/** A rule about syntax: the files that it is about, and what violates it in one of them. */
interface SyntaxRule {
  readonly applies: (source: Source) => boolean;
  readonly find: (source: ParsedSource) => readonly string[];
}

/** `applies` omits files whose text shows that they contain no violation. */
const syntaxRules = {
  any: {
    applies: ({ generated, text }) => !generated && text.includes('any'),
    find: ({ path, nodes }) =>
      nodes.some(({ kind }) => kind === ts.SyntaxKind.AnyKeyword) ? [path] : [],
  },
  defaultExports: {
    applies: ({ generated, text }) => !generated && /\bdefault\b|\bexport\s*=/.test(text),
    find: defaultExports,
  },
  longFunctions: {
    applies: ({ generated, isTest }) => !generated && !isTest,
    find: inFile(longFunctions),
  },
  hostTime: {
    applies: ({ path, isTest }) => !isTest && !clocks.has(path),
    find: inFile(hostTimeUses),
  },
  rawCallbacks: {
    applies: ({ path, isTest }) => !isTest && !uncontained.test(path),
    find: inFile(rawCallbacks),
  },
  voidedCalls: {
    applies: ({ path, isTest, text }) =>
      !isTest && !uncontained.test(path) && /\bvoid\b/.test(text),
    find: inFile(voidedCalls),
  },
  hostUses: {
    applies: ({ path, isTest, text }) =>
      !isTest &&
      !otherPrograms.has(packageOf(path)) &&
      path !== 'packages/machinery/src/base/host.ts' &&
      [...hostNames].some((name) => text.includes(name)),
    find: inFile(hostUses),
  },
  vendorNames: {
    applies: ({ path, isTest, generated }) =>
      !isTest && !generated && path !== 'packages/machinery/src/dialect.ts',
    find: (source) => (textsOf(source).some((text) => vendorName.test(text)) ? [source.path] : []),
  },
  markupUses: {
    applies: ({ path, isTest }) => !isTest && path.startsWith('packages/console/'),
    find: inFile(markupUses),
  },
  // Lists in the server may come from clients and have any length.
  spreads: {
    applies: ({ path, isTest }) => !isTest && !otherPrograms.has(packageOf(path)),
    find: inFile(spreads),
  },
  ownSearches: {
    applies: ({ path, isTest }) => !isTest && !otherPrograms.has(packageOf(path)),
    find: inFile(ownSearches),
  },
  undocumented: {
    applies: ({ isTest, generated, text }) => !isTest && !generated && /^export /m.test(text),
    find: inFile(({ tree }) => undocumentedExports(tree)),
  },
  originChecks: {
    applies: ({ path, isTest, text }) =>
      !isTest && !decides.test(path) && /custom|builtin|definitionName/i.test(text),
    find: inFile(({ tree }) => originChecks(tree)),
  },
} satisfies Readonly<Record<string, SyntaxRule>>;

type RuleName = keyof typeof syntaxRules;

/** A file as scripts/house.mjs measures it. */
interface MeasuredSource extends Source {
  readonly counts: unknown;
}

const houseScript = new URL('../../scripts/house.mjs', import.meta.url).href;
const house = (await import(houseScript)) as {
  countsOf(source: ParsedSource): unknown;
  measuredSizes(options: {
    readonly sourceOf: (path: string) => MeasuredSource | undefined;
  }): readonly (readonly [what: string, value: number, goal: number])[];
};

const ruleNames = Object.keys(syntaxRules) as RuleName[];
const findings = new Map<RuleName, string[]>(ruleNames.map((name) => [name, []]));
/** What violates a rule in all files. */
const foundBy = (name: RuleName): readonly string[] => findings.get(name) ?? [];
const measured = new Map<string, MeasuredSource>();

/** All rules look at a file together: keeping the trees of all files would take a gigabyte. */
for (const source of sources) {
  const names = ruleNames.filter((name) => syntaxRules[name].applies(source));
  if (names.length === 0) continue;
  const file = parsed(source);
  for (const name of names) findings.get(name)?.push(...syntaxRules[name].find(file));
  if (!source.isTest && !source.generated) {
    measured.set(source.path, { ...source, counts: house.countsOf(file) });
  }
  // Parsing all files takes long; vitest expects each process to answer meanwhile.
  await setImmediate();
}
