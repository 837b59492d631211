import DefaultTheme from 'vitepress/theme-without-fonts';
import './reference.css';

export default DefaultTheme;
