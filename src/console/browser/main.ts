document.title = 'Wheelhouse console';
