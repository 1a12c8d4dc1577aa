declare module 'virtual:holes' {
  const table: readonly import('./sim/holes.js').Hole[];
  export default table;
}
declare module '*.css';
