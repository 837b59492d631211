/**
 * The code of RFC 7541, appendix B: the number of bits of each byte's code, and of the end mark
 * (256). The code is canonical, so the lengths are the whole table: codes of one length count up in
 * the order of their symbols, and longer ones follow on shorter ones.
 */
const bitsOfSymbol = Uint8Array.from([
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
  28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5,
  6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6,
  7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23,
  23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22,
  22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22,
  23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27,
  27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25,
  24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
]);

const endMark = 256;
const codeBitsMax = 30;

/** Codes by symbol, each in the low bits. */
function codes(): Uint32Array {
  const made = new Uint32Array(bitsOfSymbol.length);
  let next = 0;
  for (let bits = 1; bits <= codeBitsMax; bits += 1) {
    next *= 2;
    for (let symbol = 0; symbol < bitsOfSymbol.length; symbol += 1) {
      if (bitsOfSymbol[symbol] === bits) made[symbol] = next++;
    }
  }
  return made;
}

/** A node of the code's tree: its children by bit, or -1, and the symbol of a leaf, or -1. */
interface Tree {
  readonly children: Int16Array;
  readonly symbol: Int16Array;
}

function tree(): Tree {
  const nodes = 2 * bitsOfSymbol.length;
  const children = new Int16Array(2 * nodes).fill(-1);
  const symbol = new Int16Array(nodes).fill(-1);
  let used = 1;
  codes().forEach((code, index) => {
    let node = 0;
    for (let bit = (bitsOfSymbol[index] as number) - 1; bit >= 0; bit -= 1) {
      const edge = 2 * node + ((code >>> bit) & 1);
      if (children[edge] === -1) children[edge] = used++;
      node = children[edge] as number;
    }
    symbol[node] = index;
  });
  return { children, symbol };
}

/** Bits of a step: the next state in the low bits, then what the step gives. */
const stepEmits = 1 << 9;
const stepFails = 1 << 10;
const symbolShift = 16;
const stateMask = stepEmits - 1;

interface StepTable {
  readonly steps: Uint32Array;
  readonly accepts: Uint8Array;
}

/**
 * Steps by state and half a byte. A state is an inner node of the tree; half a byte completes at most
 * one symbol, the shortest having five bits. `accepts` tells the states in which a text may end: the
 * padding is at most seven bits, the beginning of the end mark, which is all ones.
 */
function stepTable(): StepTable {
  const { children, symbol } = tree();
  const inner: number[] = [];
  const stateOf = new Int16Array(symbol.length).fill(-1);
  for (let node = 0; node < symbol.length; node += 1) {
    if (children[2 * node] === -1) continue;
    stateOf[node] = inner.length;
    inner.push(node);
  }
  const steps = new Uint32Array(16 * inner.length);
  inner.forEach((start, state) => {
    for (let half = 0; half < 16; half += 1) {
      let node = start;
      let step = 0;
      for (let bit = 3; bit >= 0 && node !== -1; bit -= 1) {
        node = children[2 * node + ((half >>> bit) & 1)] as number;
        const found = node === -1 ? -1 : (symbol[node] as number);
        if (found === endMark) node = -1;
        else if (found !== -1) {
          step = stepEmits | (found << symbolShift);
          node = 0;
        }
      }
      steps[16 * state + half] = node === -1 ? stepFails : step | (stateOf[node] as number);
    }
  });
  const accepts = new Uint8Array(inner.length);
  for (let node = 0, bits = 0; bits < 8; bits += 1) {
    accepts[stateOf[node] as number] = 1;
    node = children[2 * node + 1] as number;
  }
  return { steps, accepts };
}

/** Made when the first coded text comes: a start is to be quick. */
let table: StepTable | undefined;

/** Upper bound of the decoded length of `bytes` coded bytes: the shortest code has five bits. */
export function huffmanDecodedMax(bytes: number): number {
  return Math.floor((bytes * 8) / 5);
}

/**
 * Decodes `source` from `start` to `end` into `target` from 0, which must hold `huffmanDecodedMax`.
 * @returns the decoded length; -1 for a text with the end mark or wrong padding
 */
export function huffmanDecode(
  source: Uint8Array,
  place: { readonly start: number; readonly end: number },
  target: Uint8Array,
): number {
  table ??= stepTable();
  const { steps, accepts } = table;
  const { start, end } = place;
  let state = 0;
  let length = 0;
  for (let at = start; at < end; at += 1) {
    const byte = source[at] as number;
    let step = steps[(state << 4) | (byte >>> 4)] as number;
    if ((step & stepEmits) !== 0) target[length++] = step >>> symbolShift;
    if ((step & stepFails) !== 0) return -1;
    step = steps[((step & stateMask) << 4) | (byte & 15)] as number;
    if ((step & stepEmits) !== 0) target[length++] = step >>> symbolShift;
    if ((step & stepFails) !== 0) return -1;
    state = step & stateMask;
  }
  return accepts[state] === 1 ? length : -1;
}
