import ts from 'typescript';

/**
 * Finds code that checks whether a kind is built in or custom, by the forms of such a check: names
 * and flags that say so, an optional member `custom`, and comparisons of values that distinguish
 * the two. Returns the text of each, in source order.
 */
export function originChecks(tree: ts.SourceFile): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (isOriginCheck(node, tree)) found.push(node.getText(tree));
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

function isOriginCheck(node: ts.Node, tree: ts.SourceFile): boolean {
  if (ts.isIdentifier(node)) return /^is(Custom|Builtin)Kind$|^isCustom$/.test(node.text);
  if (ts.isPropertySignature(node)) return isOriginFlag(node, tree);
  if (ts.isBindingElement(node)) return (node.propertyName ?? node.name).getText(tree) === 'custom';
  if (ts.isPropertyAccessExpression(node)) {
    return node.questionDotToken !== undefined && memberOf(node.expression) === 'custom';
  }
  if (ts.isPrefixUnaryExpression(node)) return memberOf(node.operand) === 'custom';
  return ts.isBinaryExpression(node) && comparesOrigin(node);
}

/** `custom: boolean` in a type. */
function isOriginFlag({ name, type }: ts.PropertySignature, tree: ts.SourceFile): boolean {
  return name.getText(tree) === 'custom' && type?.kind === ts.SyntaxKind.BooleanKeyword;
}

const equalities = new Set([
  ts.SyntaxKind.EqualsEqualsEqualsToken,
  ts.SyntaxKind.ExclamationEqualsEqualsToken,
]);

/** A comparison of either distinguishes every built-in kind from every custom one. */
const tellsOrigin = new Set(['builtinBehavior', 'definitionName']);

function comparesOrigin({ left, operatorToken, right }: ts.BinaryExpression): boolean {
  if (!equalities.has(operatorToken.kind)) return false;
  const sides = [memberOf(left), memberOf(right)];
  return (
    sides.some((name) => tellsOrigin.has(name)) ||
    (sides[0] === 'custom' && sides[1] === 'undefined')
  );
}

/** `custom` of `def.custom`; the name of an identifier; otherwise nothing. */
function memberOf(node: ts.Expression): string {
  if (ts.isPropertyAccessExpression(node)) return node.name.text;
  return ts.isIdentifier(node) ? node.text : '';
}
