import type { Random } from '@wheelhouse/machinery';

/** An element of DER that can be changed and encoded again. */
interface Node {
  tag: number;
  /** For a primitive element. */
  content: Buffer;
  /** For a constructed element. */
  children: Node[] | undefined;
  /** Writes the length in an encoding that DER does not allow. */
  length: 'minimal' | 'padded' | 'indefinite';
}

function parsed(bytes: Buffer): Node[] {
  const nodes: Node[] = [];
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes.readUInt8(at);
    const first = bytes.readUInt8(at + 1);
    const count = first < 0x80 ? 0 : first & 0x7f;
    const length = count === 0 ? first : bytes.readUIntBE(at + 2, count);
    const from = at + 2 + count;
    const content = bytes.subarray(from, from + length);
    const children = (tag & 0x20) === 0 ? undefined : parsed(content);
    nodes.push({ tag, content, children, length: 'minimal' });
    at = from + length;
  }
  return nodes;
}

function encoded(node: Node): Buffer {
  const content =
    node.children === undefined ? node.content : Buffer.concat(node.children.map(encoded));
  const octets: number[] = [];
  for (let rest = content.length; rest > 0; rest >>>= 8) octets.unshift(rest & 0xff);
  if (node.length === 'indefinite') {
    return Buffer.concat([Buffer.from([node.tag, 0x80]), content, Buffer.alloc(2)]);
  }
  if (node.length === 'padded') octets.unshift(0);
  const isShort = node.length === 'minimal' && content.length < 0x80;
  const length = isShort ? [content.length] : [0x80 | octets.length, ...octets];
  return Buffer.concat([Buffer.from([node.tag, ...length]), content]);
}

function allOf(node: Node): Node[] {
  return [node, ...(node.children ?? []).flatMap(allOf)];
}

const stringTags = [0x0c, 0x12, 0x13, 0x14, 0x16, 0x1a, 0x1b, 0x1c, 0x1e];
const pieces = [
  Buffer.from('\ufeff'),
  Buffer.from('\0'),
  Buffer.from([0xfe, 0xff]),
  Buffer.from([0xff]),
  Buffer.from([0xc0, 0x80]),
  Buffer.from([0xed, 0xa0, 0x80]),
  Buffer.from('system:masters'),
  Buffer.from(','),
  Buffer.from('\n'),
  Buffer.from('ä'),
];

/** Applies one change to a tree of elements. */
function mutateTree(root: Node, random: Random): void {
  const nodes = allOf(root);
  const node = random.pick(nodes);
  const texts = nodes.filter(({ tag }) => stringTags.includes(tag));
  const text = texts.length === 0 ? node : random.pick(texts);
  const lists = nodes.filter(({ children }) => (children?.length ?? 0) > 0);
  const siblings = random.pick(lists).children ?? [];
  const index = random.below(siblings.length);
  const piece = random.pick(pieces);
  const cut = random.below(text.content.length + 1);
  const mutations: readonly (() => void)[] = [
    () => {
      text.tag = random.pick(stringTags);
    },
    () => {
      const [before, after] = [text.content.subarray(0, cut), text.content.subarray(cut)];
      text.content = Buffer.concat([before, piece, after]);
    },
    () => {
      text.content = Buffer.from(text.content.toString('utf8'), 'utf16le').swap16();
      text.tag = 0x1e;
    },
    () => {
      node.length = random.pick(['padded', 'indefinite'] as const);
    },
    () => {
      siblings.splice(index, 0, ...siblings.slice(index, index + 1));
    },
    () => {
      siblings.splice(index, 1);
    },
    () => {
      siblings.reverse();
    },
    () => {
      node.tag = random.below(256);
    },
    () => {
      siblings.splice(index, 0, {
        tag: 0x01,
        content: Buffer.from([random.below(256)]),
        children: undefined,
        length: 'minimal',
      });
    },
  ];
  random.pick(mutations)();
}

/** Flips, inserts, or removes a byte at a random place. */
function mutateBytes(bytes: Buffer, random: Random): Buffer {
  const at = random.below(bytes.length);
  const before = bytes.subarray(0, at);
  const byte = Buffer.from([random.below(256)]);
  const kind = random.below(3);
  if (kind === 0) return Buffer.concat([before, byte, bytes.subarray(at + 1)]);
  if (kind === 1) return Buffer.concat([before, byte, bytes.subarray(at)]);
  return Buffer.concat([before, bytes.subarray(at + 1)]);
}

/** Mutates DER: one to three changes of its structure, texts, or bytes. */
export function mutatedDer(der: Buffer, random: Random): Buffer {
  if (random.chance(0.3)) return mutateBytes(der, random);
  const [root] = parsed(der);
  if (root === undefined) return der;
  for (let count = 1 + random.below(3); count > 0; count--) mutateTree(root, random);
  return encoded(root);
}

const insertions = [
  '\n',
  '\r\n',
  '\r',
  ' ',
  '\t',
  '=',
  '!',
  '-',
  '-----',
  'A',
  '\0',
  '\ufeff',
  'Proc-Type: 4,ENCRYPTED\n\n',
  '-----BEGIN CERTIFICATE REQUEST-----\n',
  '-----END CERTIFICATE REQUEST-----\n',
  '#',
];

/** Mutates PEM: inserts text, moves lines, or adds parts of another text. */
export function mutatedPem(
  pem: string,
  { other, random }: { readonly other: string; readonly random: Random },
): string {
  let text = pem;
  for (let count = 1 + random.below(3); count > 0; count--) {
    const at = random.below(text.length + 1);
    const lines = text.split('\n');
    const line = random.below(lines.length);
    const mutations: readonly (() => string)[] = [
      () => text.slice(0, at) + random.pick(insertions) + text.slice(at),
      () => text.slice(0, at) + text.slice(at + 1),
      () => lines.toSpliced(line, 0, random.pick(insertions)).join('\n'),
      () => lines.toSpliced(line, 1).join('\n'),
      () => lines.toSpliced(line, 0, lines[line] ?? '').join('\n'),
      () => random.pick([text + other, other + text, text.replace('\n', `\n${other}`)]),
      () => text.replaceAll('\n', '\r\n'),
      () => lines.toSpliced(line, 1, `${lines[line]} `).join('\n'),
    ];
    text = random.pick(mutations)();
  }
  return text;
}
