import { displayWidth } from '../printable.ts';

/**
 * Lines of at most `width` columns: broken at spaces, and inside a word only where it is wider than a line, as a long path is. Text without a
 * limit stays one line.
 */
export function wrapText(text: string, width: number): readonly string[] {
  if (displayWidth(text) <= width) return [text];
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ').flatMap((one) => pieces(one, width))) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (displayWidth(longer) <= width) line = longer;
    else {
      if (line !== '') lines.push(line);
      line = word;
    }
  }
  return [...lines, line];
}

const SEGMENTS = new Intl.Segmenter('en', { granularity: 'grapheme' });

function pieces(word: string, width: number): readonly string[] {
  if (displayWidth(word) <= width) return [word];
  const parts: string[] = [];
  let part = '';
  for (const { segment } of SEGMENTS.segment(word)) {
    if (part !== '' && displayWidth(part + segment) > width) {
      parts.push(part);
      part = '';
    }
    part += segment;
  }
  return [...parts, part];
}
